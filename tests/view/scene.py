"""A recording written for the page and the commands: two CLIs, three sessions, every kind of entry."""

from __future__ import annotations

import json
from pathlib import Path

from acp_manifold.translators.narrow import JsonObject

HEADER: JsonObject = {
    "format": 2,
    "tool": "acp-manifold 0.1.0",
    "clis": {"claude": "2.1.332", "codex": "0.163.0"},
    "backend": None,
    "scenario": "two sessions at work, titles from everywhere",
    "date": "2026-12-01",
    "scrubbed": ["home"],
}

ONE = "102c087a-f02f-4309-ad62-b8d44afd811a"
TWO = "01a22e00-f42c-70a0-8d90-f7b4efa6d5cf"


class Scene:
    """Gathers entries; each method is one line of a party."""

    def __init__(self) -> None:
        self.entries: list[JsonObject] = []
        self.now = 0.0

    def after(self, seconds: float) -> Scene:
        self.now = round(self.now + seconds, 4)
        return self

    def client(self, direction: str, line: object, session: str = "", conn: int = 1) -> None:
        self._add({"leg": "client", "dir": direction, "conn": conn}, session, line)

    def claude(self, direction: str, line: object, session: str = ONE) -> None:
        self._add({"leg": "backend", "dir": direction, "backend": "claude", "process": 1}, session, line)

    def codex(self, direction: str, line: object, session: str = TWO) -> None:
        self._add({"leg": "backend", "dir": direction, "backend": "codex", "process": 1}, session, line)

    def stored(self, line: object, session: str = ONE) -> None:
        more: JsonObject = {"leg": "store", "dir": "in", "backend": "claude", "file": "projects/p/t.jsonl"}
        self._add(more, session, line)

    def note(self, line: JsonObject, session: str = "", backend: str = "claude") -> None:
        self._add({"leg": "bridge", "dir": "in", "backend": backend}, session, line)

    def _add(self, more: JsonObject, session: str, line: object) -> None:
        entry: JsonObject = {"t": self.now, **more}
        if session:
            entry["session"] = session
        self.entries.append({**entry, "line" if isinstance(line, dict) else "text": line})
        self.after(0.0021)


def request(number: int, method: str, **params: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def answer(number: int, **result: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def update(session: str, tag: str, **more: object) -> JsonObject:
    params = {"sessionId": session, "update": {"sessionUpdate": tag, **more}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(session: str, text: str) -> JsonObject:
    return update(session, "agent_message_chunk", content={"type": "text", "text": text})


def delta(text: str) -> JsonObject:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return {"type": "stream_event", "event": event, "session_id": ONE}


def scene() -> list[JsonObject]:
    """A minute with both CLIs."""
    s = Scene()
    capabilities: JsonObject = {"elicitation": {"form": {}}}
    s.client(
        "in", request(0, "initialize", protocolVersion=1, clientInfo={"name": "zed"}, clientCapabilities=capabilities)
    )
    s.client("out", answer(0, protocolVersion=1, agentInfo={"name": "acp-manifold", "version": "0.1.0"}))
    s.note({"note": "start", "process": 1})
    s.client("in", request(1, "session/new", cwd="/project", mcpServers=[]))
    s.after(0.6).claude("out", {"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}})
    s.after(0.2).claude("in", {"type": "control_response", "response": {"subtype": "success", "request_id": "r1"}})
    s.client("out", answer(1, sessionId=ONE), ONE)
    s.client(
        "in",
        request(2, "session/prompt", sessionId=ONE, prompt=[{"type": "text", "text": "Fix the parser of dates"}]),
        ONE,
    )
    s.claude(
        "out",
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "Fix the parser of dates"}]}},
    )
    s.client(
        "in", request(3, "session/new", cwd="/project", _meta={"acp-manifold": {"backend": "codex", "title": "Docs"}})
    )
    s.codex("out", {"id": 4, "method": "thread/start", "params": {"cwd": "/project"}}, "")
    s.codex("in", {"id": 4, "result": {"thread": {"id": TWO}}}, TWO)
    s.codex("out", {"id": 5, "method": "thread/name/set", "params": {"threadId": TWO, "name": "Docs"}})
    s.codex("in", {"id": 5, "result": {}})
    s.client("out", answer(3, sessionId=TWO), TWO)
    for number in range(24):
        s.after(0.02).claude("in", delta(f"word{number} "))
        s.client("out", chunk(ONE, f"word{number} "), ONE)
    ask = {"tool_name": "Bash", "input": {"command": "pytest -q tests/test_dates.py"}, "tool_use_id": "toolu_1"}
    s.claude("in", {"type": "control_request", "request_id": "c1", "request": {"subtype": "can_use_tool", **ask}})
    s.client(
        "out",
        request(
            1,
            "session/request_permission",
            sessionId=ONE,
            toolCall={"title": "pytest -q tests/test_dates.py"},
            options=[],
        ),
        ONE,
    )
    s.claude("in", {"type": "control_request", "request_id": "g1", "request": {"subtype": "unheard"}})
    s.claude(
        "out",
        {
            "type": "control_response",
            "response": {"subtype": "error", "request_id": "g1", "error": "Unsupported request"},
        },
    )
    s.note({"note": "dropped", "reason": "no session has this thread", "method": "turn/started"}, "", "codex")
    s.codex("in", "WARN not a line of the protocol", "")
    s.after(3.2).client("in", answer(1, outcome={"outcome": "selected", "optionId": "allow_once"}), ONE)
    s.claude(
        "out",
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": "c1", "response": {"behavior": "allow"}},
        },
    )
    s.stored({"type": "ai-title", "aiTitle": "Dates and parsers", "sessionId": ONE})
    s.note({"note": "title", "title": "Dates and parsers", "origin": "generated", "heard": "news"}, ONE)
    s.client("out", update(ONE, "session_info_update", title="Dates and parsers"), ONE)
    s.after(0.3).client("in", request(4, "session/set_title", sessionId=ONE, title="Parser of dates"), ONE)
    s.claude(
        "out",
        {
            "type": "control_request",
            "request_id": "r2",
            "request": {"subtype": "rename_session", "title": "Parser of dates"},
        },
    )
    s.claude("in", {"type": "system", "subtype": "session_title_changed", "title": "Parser of dates"})
    s.claude("in", {"type": "control_response", "response": {"subtype": "success", "request_id": "r2"}})
    s.client("out", answer(4, title="Parser of dates"), ONE)
    s.note({"note": "title", "title": "A late generated one", "origin": "generated", "heard": "discarded"}, ONE)
    s.client(
        "in", request(5, "session/prompt", sessionId=TWO, prompt=[{"type": "text", "text": "Write\nthe docs"}]), TWO
    )
    s.codex(
        "out",
        {
            "id": 6,
            "method": "turn/start",
            "params": {"threadId": TWO, "input": [{"type": "text", "text": "Write\nthe docs"}]},
        },
    )
    s.codex(
        "in",
        {
            "method": "item/started",
            "params": {"threadId": TWO, "item": {"type": "commandExecution", "command": "make docs"}},
        },
    )
    s.codex(
        "in",
        {
            "id": 1,
            "method": "item/commandExecution/requestApproval",
            "params": {"threadId": TWO, "command": "make docs"},
        },
    )
    s.after(1.4).codex("out", {"id": 1, "result": {"decision": "decline"}})
    s.codex("in", {"id": 6, "error": {"code": -32600, "message": "The turn was refused"}})
    s.client("out", {"jsonrpc": "2.0", "id": 5, "error": {"code": -32603, "message": "The turn was refused"}}, TWO)
    s.claude("in", {"type": "result", "subtype": "success", "result": "Done", "stop_reason": "end_turn"})
    s.client("out", answer(2, stopReason="end_turn"), ONE)
    s.note({"note": "exit", "process": 1, "status": "0"})
    return s.entries


def write(path: Path, entries: list[JsonObject], header: JsonObject = HEADER) -> Path:
    """A recording as a file."""
    lines = [header, *entries]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


HOSTILE = (
    "</script><script>window.alive = 1</script>",
    "<!--<script>",
    "--><script>window.alive = 2</script>",
    "<img src=x onerror='window.alive = 3'>",
    "javascript:window.alive=4",
    "<a href='javascript:window.alive=5' autofocus onfocus='window.alive=6'>x</a>",
    "</title></style><svg onload=window.alive=7>",
    "<iframe srcdoc='<script>parent.alive = 8</script>'></iframe>",
    "%script% %recording% ${alert(1)} {{7*7}}",
    "\u2028\u2029\u202e\x00\ud800 \\u003cimg>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
)


def hostile(text: str) -> list[JsonObject]:
    """Every place that a recording has for a text, with the text in it."""
    entries: list[JsonObject] = [
        {"t": 0, "leg": "client", "dir": "in", "conn": 1, "session": text, "line": request(1, text, **{text: text})},
        {"t": 0.1, "leg": "client", "dir": "out", "session": text, "line": chunk(text, text)},
        {
            "t": 0.2,
            "leg": "client",
            "dir": "out",
            "session": text,
            "line": update(text, "session_info_update", title=text),
        },
        {
            "t": 0.3,
            "leg": "backend",
            "dir": "in",
            "backend": text,
            "process": text,
            "session": text,
            "line": {"type": text},
        },
        {"t": 0.4, "leg": "store", "dir": "in", "backend": text, "file": text, "line": {"customTitle": text}},
        {"t": 0.5, "leg": "backend", "dir": "in", "text": text},
        {"t": 0.6, "leg": "bridge", "line": {"note": "title", "title": text, "origin": text, "heard": text}},
        {"t": 0.7, "leg": "bridge", "line": {"note": text, "reason": text}},
        {"t": 0.8, "leg": "client", "dir": "out", "conn": 1, "line": {"id": 1, "error": {"code": 1, "message": text}}},
    ]
    return entries
