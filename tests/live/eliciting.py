"""An MCP server for live tests whose tools ask the person: `form` and `page`.

Its tools give back the answer they got. `page` tells that it is done right behind the answer. A schema
that no form can show is refused by both CLIs themselves (Claude Code 2.1.332, codex-cli 0.163.0: -32602).
"""

from __future__ import annotations

import sys
from pathlib import Path

from acp_manifold.translators.narrow import JsonObject

from .lab import Lab

_SERVER = """
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

FORM = {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "title": "Name", "minLength": 1},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "color": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
    "many": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}}}}
ASKS = {
    "form": {"mode": "form", "message": "Who are you?", "requestedSchema": FORM},
    "page": {"mode": "url", "message": "Log in", "url": "https://example.org/login", "elicitationId": "one"},
}
calls = {}
for line in sys.stdin:
    heard = json.loads(line)
    match heard.get("method"):
        case "initialize":
            version = heard["params"]["protocolVersion"]
            say(id=heard["id"], result={"protocolVersion": version, "capabilities": {"tools": {}},
                                        "serverInfo": {"name": "probe", "version": "1"}})
        case "tools/list":
            tool = {"description": "asks", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
            say(id=heard["id"], result={"tools": [{"name": name, **tool} for name in ASKS]})
        case "tools/call":
            name = heard["params"]["name"]
            asked = f"ask-{heard['id']}"
            calls[asked] = heard["id"], name
            say(id=asked, method="elicitation/create", params=ASKS[name])
        case None if heard.get("id") in calls:
            call, name = calls.pop(heard["id"])
            told = json.dumps(heard.get("result", heard.get("error")))
            say(id=call, result={"content": [{"type": "text", "text": "answered " + told}]})
            if name == "page":
                say(method="notifications/elicitation/complete", params={"elicitationId": "one"})
        case _:
            if "id" in heard:
                say(id=heard["id"], result={})
"""


def eliciting(lab: Lab) -> JsonObject:
    """The server, as a client gives it to `session/new`."""
    path = Path(lab.folder) / "eliciting.py"
    path.write_text(_SERVER)
    return {"name": "probe", "command": sys.executable, "args": [str(path)], "env": []}
