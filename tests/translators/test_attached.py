"""Resources go to a CLI as text, and come back from its store as resources."""

from __future__ import annotations

import pytest

from acp_manifold.translators.attached import restored
from acp_manifold.translators.claude.input import user_message
from acp_manifold.translators.claude.records import typed_content, typed_texts
from acp_manifold.translators.codex.items import user_content
from acp_manifold.translators.codex.prompts import refused, to_input
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import BlobResource, Content, Image, Prompt, ResourceLink, Text, TextResource

CODE = TextResource("file:///w/a%20b.py", 'print("</context>")\n\n')
PICTURE = Image("iVBORw0KGgo=", "image/png", "file:///w/shot.png")
PAPER = BlobResource("file:///w/paper.pdf", "JVBERg==", "application/pdf")
SENT: Prompt = (Text("Look at"), CODE, Text("and at"), PICTURE, Text("please"))


def record(prompt: Prompt) -> JsonObject:
    return {"type": "user", "message": obj(user_message(prompt, "u"), "message")}


def test_a_prompt_with_resources_comes_back_from_claude_code_as_it_was_sent() -> None:
    assert typed_content(record((*SENT, PAPER))) == [*SENT, PAPER]


def test_a_prompt_with_resources_comes_back_from_codex_as_it_was_sent() -> None:
    assert user_content({"content": to_input(SENT)}) == SENT


LINKS: Prompt = (
    Text("Look at "),
    ResourceLink("file:///w/a.py", "a.py"),
    Text(" "),
    ResourceLink("file:///w/a%20%281%29.py", "a (1).py"),
    PICTURE,
    ResourceLink("file:///w/b.md", "b.md"),
    Image("iVBORw0KGgo=", "image/png"),
    ResourceLink("file:///w/a%20b.py#L2-3", "a b.py"),
    ResourceLink("file:///w/%C3%A4%23.py", "ä#.py"),
    ResourceLink("file:///w/a.py?symbol=f#L1:2", "f [in a.py]"),
    ResourceLink("https://example.org/a(b)c", "Page [x](y)"),
    Text("\n  and @/w/a.py, [@b](/w/b)\n"),
)


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_links_come_back_as_links_and_all_text_as_it_was(cli: str) -> None:
    sent = list(LINKS)
    stored = typed_content(record(LINKS)) if cli == "claude" else list(user_content({"content": to_input(LINKS)}))
    sent[10] = ResourceLink("https://example.org/a(b)c", "Page [x] (y)")
    assert stored == sent


def test_what_was_typed_in_a_terminal_is_text() -> None:
    typed: JsonObject = {"type": "user", "message": {"role": "user", "content": "@/w/a.py "}}
    assert typed_content(typed) == [Text("@/w/a.py")]


def test_the_text_of_a_resource_is_nothing_a_person_typed() -> None:
    assert typed_texts(record((CODE,))) == ["[@a b.py](file:///w/a%20b.py)"]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ([Text('<context ref="x:1">\nhello\n</context>')], [TextResource("x:1", "hello")]),
        ([Text("[@a](x:1)"), Text("why?")], [ResourceLink("x:1", "a"), Text("why?")]),
        ([Text("[@a](/w/a b)")], [ResourceLink("file:///w/a%20b", "a")]),
        ([Text("[@a](/w/ä)")], [ResourceLink("file:///w/%C3%A4", "a")]),
        ([Text("see [@a](x:1)")], [Text("see [@a](x:1)")]),
        ([Text("[@a](/w/a) and [@b](/w/b)")], [Text("[@a](/w/a) and [@b](/w/b)")]),
        ([Text("[@a](/w/a) (or b)")], [Text("[@a](/w/a) (or b)")]),
        ([Image("AAAA", "image/png")], [Image("AAAA", "image/png")]),
    ],
)
def test_what_others_have_stored_is_read_alike(stored: list[Content], shown: list[Content]) -> None:
    assert restored(stored) == shown


def test_codex_takes_a_document_only_from_disk() -> None:
    assert refused((Text("x"), PAPER)) is None
    place, why = refused((Text("x"), PAPER._replace(uri="https://h/paper.pdf"))) or (-1, "")
    assert place == 1 and "application/pdf" in why
