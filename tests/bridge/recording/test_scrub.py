"""What is nobody else's business is not in a recording; what replay needs still is."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.bridge.recording.scrub import Scrubber
from acp_manifold.translators.narrow import JsonObject

SECRETS = ('s3cr3t-öne-with "quotes" and \\', "hunter2hunter2", "line\nbreak-token", "💎jewel-token-💎")
ENVIRON = {"MY_API_KEY": SECRETS[0], "DB_PASSWORD": SECRETS[1], "X_TOKEN": SECRETS[2], "github_token": SECRETS[3]}
HOME, USER = "/home/alice.b", "alice.b"


def scrubber() -> Scrubber:
    return Scrubber(ENVIRON, HOME, USER)


def scrubbed(value: JsonObject, of: Scrubber | None = None) -> JsonObject:
    clean: JsonObject = json.loads((of or scrubber()).line(json.dumps(value, ensure_ascii=False).encode()))
    return clean


words = st.text(max_size=20)
planted = st.sampled_from(SECRETS)
json_values = st.recursive(
    st.one_of(words, st.integers(), st.booleans(), st.none(), st.tuples(words, planted, words).map("".join)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=10,
)


@pytest.mark.case("R02")
@given(json_values, st.booleans())
def test_no_secret_of_the_environment_is_found_however_it_is_spelled(value: object, ascii_only: bool) -> None:
    line = scrubber().line(json.dumps({"line": value}, ensure_ascii=ascii_only).encode())
    text = json.dumps(json.loads(line), ensure_ascii=False)
    for secret in SECRETS:
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in text


@given(json_values)
def test_what_is_scrubbed_once_is_not_changed_again(value: object) -> None:
    clean = scrubbed({"line": value})
    assert scrubbed(clean) == clean


@given(
    st.recursive(
        st.one_of(
            st.text(st.characters(codec="utf-8", exclude_characters="@/-"), max_size=5),
            st.uuids().map(str),
            st.integers(),
        ),
        lambda s: st.lists(s),
    )
)
def test_a_line_with_nothing_in_it_is_the_same_bytes(value: object) -> None:
    line = json.dumps({"id": 1, "line": value}, ensure_ascii=False).encode()
    assert scrubber().line(line) == line


def test_equal_values_are_equal_placeholders_and_others_are_others() -> None:
    of = scrubber()
    assert of.text(f"{SECRETS[0]} and {SECRETS[1]}, {SECRETS[0]} again") == "<token-1> and <token-2>, <token-1> again"
    assert scrubbed({"a": SECRETS[1]}, of) == {"a": "<token-2>"}
    assert of.text("ask ann@example.org or bob@example.org, not ann@example.org") == (
        "ask <email-1> or <email-2>, not <email-1>"
    )
    assert of.kinds == {"token", "email"}


def test_environment_and_headers_of_mcp_servers_are_secrets_wherever_they_come_again() -> None:
    of = scrubber()
    asked: JsonObject = {
        "method": "session/new",
        "params": {
            "cwd": f"{HOME}/p",
            "mcpServers": [
                {"name": "files", "command": "srv", "env": [{"name": "WHERE", "value": "in-the-cellar"}]},
                {"name": "web", "url": "http://x", "headers": [{"name": "X-Id", "value": "visitor-number-7"}]},
            ],
        },
    }
    servers = scrubbed(asked, of)["params"]["mcpServers"]  # type: ignore[index]
    assert servers[0]["env"] == [{"name": "WHERE", "value": "<token-1>"}]
    assert servers[1]["headers"] == [{"name": "X-Id", "value": "<header-1>"}]
    assert scrubbed({"text": "it is in-the-cellar, visitor-number-7"}, of) == {"text": "it is <token-1>, <header-1>"}
    codex: JsonObject = {"mcp_servers": {"files": {"env": {"WHERE": "in-the-cellar", "name": "short"}}}}
    assert scrubbed(codex, of) == {"mcp_servers": {"files": {"env": {"WHERE": "<token-1>", "name": "<token-2>"}}}}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer <token-1>"),
        ("curl -H 'authorization: Basic YWxpY2U6cHc='", "curl -H 'authorization: Basic <token-1>'"),
        ("key sk-ant-api03-abcdefghijk", "key <token-1>"),
        ("ghp_abcdefghijklmnopqrstuvwxyz", "<token-1>"),
        ("AKIAABCDEFGHIJKLMNOP", "<token-1>"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl", "<token-1>"),
        ("mail alice@example.org", "mail <email-1>"),
        ("npm install @scope/package@1.2", "npm install @scope/package@1.2"),
        ("task-force, skill-set, a risk-free ask", "task-force, skill-set, a risk-free ask"),
    ],
)
def test_shapes_of_secrets_and_addresses(said: str, left: str) -> None:
    assert scrubbed({"text": said}) == {"text": left}


@pytest.mark.parametrize("member", ["authorization", "Authorization", "api_key", "apiKey", "x-api-key", "access_token"])
def test_members_that_hold_secrets(member: str) -> None:
    assert scrubbed({member: "short"}) == {member: "<token-1>"}


def test_members_that_only_sound_like_it_stay() -> None:
    value: JsonObject = {"max_tokens": 5, "apiKeySource": "none", "tokens": "many", "token": 7, "author": "me"}
    assert scrubbed(value) == value


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("/home/alice.b", "/<home>"),
        ("/home/alice.b/p/a.py", "/<home>/p/a.py"),
        ("cd /home/alice.b; ls", "cd /<home>; ls"),
        ("it is in /home/alice.b.", "it is in /<home>."),
        ("/home/alice.bc/p", "/home/alice.bc/p"),
        ("/home/alice.b.old/p", "/home/alice.b.old/p"),
        ("/mnt/home/alice.b/p", "/mnt/home/<user>/p"),
        ("/srv/alice.b/p", "/srv/<user>/p"),
        ("/srv/malice.b/p", "/srv/malice.b/p"),
        ("alice.b said so", "alice.b said so"),
        ("/x/projects/-home-alice-b-p/1.jsonl", "/x/projects/--home--p/1.jsonl"),
        ("file:///home/alice.b/a.py", "file:///<home>/a.py"),
    ],
)
def test_home_and_user_are_taken_out_of_paths_alone(path: str, left: str) -> None:
    assert scrubbed({"path": path, path: 1}) == {"path": left, left: 1}


@given(
    st.lists(st.sampled_from(["a", "b.c", "alice.b", "-d"]), max_size=3),
    st.lists(st.sampled_from(["a", "e"]), max_size=2),
)
def test_what_lies_in_the_working_directory_still_does(below_home: list[str], inside: list[str]) -> None:
    cwd = "/".join([HOME, *below_home])
    path = "/".join([cwd, *inside])
    clean = scrubbed({"cwd": cwd, "path": path})
    assert str(clean["path"]) == "/".join([str(clean["cwd"]), *inside])
    assert str(clean["cwd"]).startswith("/<home>")


@given(
    st.lists(
        st.one_of(st.uuids().map(str), st.from_regex(r"(toolu|msg|call)_[A-Za-z0-9]{12,24}", fullmatch=True)),
        max_size=4,
    )
)
def test_ids_stay(ids: list[str]) -> None:
    value: JsonObject = {"sessionId": str(uuid4()), "ids": list(ids), "email": "a@b.cd"}
    assert scrubbed(value) == {**value, "email": "<email-1>"}


def test_names_that_say_where_a_secret_is_and_values_too_short_to_be_one_are_no_secrets() -> None:
    environ = {"SSH_AUTH_SOCK": "/tmp/agent.sock", "TOKEN_FILE": "/etc/token", "A_KEY": "yes", "MAX_TOKENS": "12345678"}
    of = Scrubber(environ, "", "root")
    said = "/tmp/agent.sock /etc/token yes 12345678 /root/x"
    assert of.text(said) == said


def test_what_is_no_json_is_scrubbed_as_text() -> None:
    assert scrubber().line(b"warn: hunter2hunter2 \xff") == "warn: <token-1> \ufffd".encode()


TOLD = "abcdef1234567890"


@pytest.mark.case("R02")
@pytest.mark.parametrize(
    "words",
    [
        f"https://host/x?api_key={TOLD}&b=1",
        f"https://host/sse?b=1&access_token={TOLD}",
        f"git clone https://bob:{TOLD}@host/x.git",
        f"postgres://bob:{TOLD}@db/x",
        f"curl -H 'x-api-key: {TOLD}' host",
        f"export FOO_TOKEN={TOLD}",
        f"aws_secret_access_key = {TOLD}",
        f"tool --api-key {TOLD}",
        f"tool --db-password={TOLD} --on",
        f"-----BEGIN RSA PRIVATE KEY-----\n{TOLD}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_is_assigned_to_a_secret_name_is_not_found_and_its_name_is(words: str) -> None:
    for form in (words, json.dumps({"inner": words})):
        clean = json.dumps(scrubbed({"line": form}))
        assert TOLD not in clean
        assert "<token-1>" in clean or "<token-1>&" in clean
        assert words.partition(TOLD)[0].strip().split()[0] in clean


@pytest.mark.parametrize(
    "words",
    [
        "token = get_token(request1)",
        "input_tokens=12345",
        "password=",
        "the secret = of good writing",
        "https://host:8080/a@b1",
        "--token-budget 12345678",
        "api_key=os.environ1[",
    ],
)
def test_code_and_figures_stay(words: str) -> None:
    assert scrubbed({"line": words}) == {"line": words}


def test_an_argument_behind_a_flag_for_secrets_is_one_wherever_it_stands() -> None:
    of = scrubber()
    clean = scrubbed({"command": "npx", "args": ["-y", "server", "--token", "behind-the-cellar-door"]}, of)
    assert clean == {"command": "npx", "args": ["-y", "server", "--token", "<token-1>"]}
    assert scrubbed({"line": "it is behind-the-cellar-door"}, of) == {"line": "it is <token-1>"}


@pytest.mark.case("R02")
def test_a_known_secret_is_found_in_an_address_and_as_base64() -> None:
    of = Scrubber({"MY_API_KEY": "planted/secret+one?>"}, HOME, USER)
    told = "https://h/?k=planted%2Fsecret%2Bone%3F%3E and cGxhbnRlZC9zZWNyZXQrb25lPz4= and cGxhbnRlZC9zZWNyZXQrb25lPz4"
    assert scrubbed({"line": told}, of) == {"line": "https://h/?k=<token-1> and <token-2>= and <token-2>"}
