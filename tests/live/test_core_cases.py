"""What any ACP agent has to do, on both real CLIs: thirteen core cases, and lines that are none.

The cases are those of acpx' profile `acp-core-v1` that need no agent of its own.
"""

from __future__ import annotations

import json

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Client
from .conftest import all_and_codex_in_v2
from .lab import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.live]


def of(session: str, *blocks: JsonObject) -> JsonObject:
    return {"sessionId": session, "prompt": list(blocks)}


def words(said: str) -> JsonObject:
    return {"type": "text", "text": said}


@all_and_codex_in_v2
async def test_the_core_cases_hold_in_one_session(lab_agent: Client, both: Lab, backend: str, version: int) -> None:
    agent = lab_agent
    agent.version = version
    # initialize
    greeting = await agent.initialize()
    assert greeting["protocolVersion"] == version
    assert version == 2 or obj(greeting, "agentCapabilities")["loadSession"] is True

    # new, and new with a directory that is none
    session = await agent.new_session(both.cwd, backend)
    assert session
    assert (await agent.fails("session/new", {"cwd": "relative", "mcpServers": []})).code == -32602
    assert (await agent.fails("session/new", {"cwd": f"{both.cwd}/none", "mcpServers": []})).code == -32602

    # a single turn, and several: nothing comes after the end of one, but for what is no part of the turn
    assert await agent.ask(session, "TEXT<<one >>") == "end_turn"
    answered = len(agent.lines)
    assert await agent.ask(session, "TEXT<<two >>") == "end_turn"
    assert agent.said(session) == "one two "
    assert agent.heard(session, "usage_update")
    between = [line for line in agent.lines[answered:] if "method" in line]
    late = [text(obj(obj(line, "params"), "update"), "sessionUpdate") for line in between]
    begins = late.index("agent_message_chunk" if version == 1 else "user_message")
    of_the_session = {"session_info_update", "available_commands_update", "config_option_update", "usage_update"}
    assert set(late[:begins]) <= of_the_session

    # cancel in flight, a follow-up to it, cancel while idle
    turn = agent.prompt(session, "TEXT<<three\n>> GATE[never] TEXT<<not said>>")
    await agent.hears(session, "three")
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    assert await agent.ask(session, "TEXT<<four >>") == "end_turn"
    heard = len(agent.lines)
    agent.notify("session/cancel", {"sessionId": session})
    assert await agent.ask(session, "TEXT<<five >>") == "end_turn"
    assert agent.said(session) == "one two three\nfour five "

    # no notification is answered, known or not
    agent.notify("no/such/notification", {"x": 1})
    agent.notify("session/prompt", of(session, words("TEXT<<not said>>")))
    await agent.list_sessions()
    answers = [line for line in agent.lines[heard:] if "method" not in line]
    assert len(answers) == 2 and all("result" in line for line in answers)

    # a session of a wrong type, and one that nobody has
    for wrong, code in ((5, -32602), (None, -32602), (["x"], -32602), ("no-such", -32002)):
        assert (await agent.fails("session/prompt", {"sessionId": wrong, "prompt": [words("x")]})).code == code

    # a resource link
    link: JsonObject = {"type": "resource_link", "uri": f"file://{both.cwd}/notes.md", "name": "notes.md"}
    linked = await agent.say(session, [words("TEXT<<six>>"), link]).answer()
    assert linked["stopReason"] == "end_turn" and agent.said(session).endswith("six")
    assert any("notes.md" in json.dumps(request.body) for request in both.model.requests)


HUGE = 10**30
LINES: list[tuple[bytes, int | str | None, int | None]] = [
    (b"garbage", None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"session/list"', None, -32700),  # half a line
    (b'{"jsonrpc":"2.0","id":2,"method":"a\xff\xfe"}', None, -32700),  # no UTF-8
    (b"\x00\x00", None, -32700),
    (b'{"jsonrpc":"2.0","id":3,"method":"x\x00y"}', None, -32700),  # NUL must be escaped
    (b"[" * 100_000, None, -32700),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, None, -32700),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"x"}', None, -32700),
    (b"[]", None, -32600),
    (b'[{"jsonrpc":"2.0","id":4,"method":"session/list"}]', None, -32600),
    (b"5", None, -32600),
    (b'"text"', None, -32600),
    (b"null", None, -32600),
    (b"{}", None, -32600),
    (b'{"jsonrpc":"1.0","id":"v","method":"session/list"}', "v", -32600),
    (b'{"id":"none","method":"session/list"}', "none", -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"session/list"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"session/list"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":"m","method":7}', "m", -32600),
    (b'{"jsonrpc":"2.0","id":"p","method":"session/list","params":[1]}', "p", -32602),
    (b'{"jsonrpc":"2.0","id":"u","method":"no/such"}', "u", -32601),
    (b'{"jsonrpc":"2.0","id":"n","method":"session/cancel","params":{}}', "n", -32601),  # a notification with an id
    (b'{"jsonrpc":"2.0","id":"s","method":"session/update","params":{}}', "s", -32601),  # what only we may say
    (b'{"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{}}', "f", -32601),
    (b'{"jsonrpc":"2.0","id":%d,"method":"no/such"}' % HUGE, HUGE, -32601),
    (b'{"jsonrpc":"2.0","id":"%s","method":"no/such"}' % (b"i" * 100_000), "i" * 100_000, -32601),
    (b'{"jsonrpc":"2.0","id":"w","method":"%s"}' % (b"m" * 100_000), "w", -32601),
    (b'{"jsonrpc":"2.0","id":"nobody","result":{}}', None, None),
    (b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}', None, None),
    (b'{"jsonrpc":"2.0","method":"no/such/notification"}', None, None),
    (b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}', None, None),
    (b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[]}}', None, None),
    (b"", None, None),
    (b"  \t ", None, None),
]
"""A line; the id and the code of the error it is answered with, or None for no answer."""


@all_and_codex_in_v2
async def test_lines_that_are_no_messages_cost_one_error_each_and_no_session(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    turn = agent.prompt(session, "TEXT<<begun\n>> GATE[mid] TEXT<<ended>>")
    await agent.hears(session, "begun")
    heard = len(agent.lines)
    for line, known, _ in LINES:
        if known is not None:
            agent.expect(known)
        agent.send_line(line)
    await agent.list_sessions()
    answers = [line for line in agent.lines[heard:] if "error" in line]
    assert [(line["id"], obj(line, "error")["code"]) for line in answers] == [
        (known, code) for _, known, code in LINES if code is not None
    ]
    assert all(len(text(obj(line, "error"), "message")) < 500 for line in answers)
    both.model.gate("mid").set()
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert agent.said(session) == "begun\nended"
    with anyio.fail_after(20):
        # Messages come into the store up to a tenth of a second after they were said (Claude Code 2.1.332).
        while not (rows := as_objects(await agent.list_sessions())):
            pass
    assert len(rows) == 1
