"""An MCP server with one tool, for scenarios. Plain Python: it runs as a program of its own, far from this tree."""

import json
import sys

RESULTS: dict[str, dict[str, object]] = {
    "initialize": {
        "protocolVersion": "2025-03-26",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "probe", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "seen"}]},
}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": RESULTS.get(asked["method"], {})}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
