"""What is imported before a CLI is started, which is what every start of the agent waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from acp_manifold.bridge.serve import serve
from acp_manifold.bridge.backends import find_backends
print(*[backend.name for backend in find_backends(())])
print(*sorted({"asyncio", "anyio", "dataclasses", "pydantic", "click", "sqlite3", "watchfiles"} & set(sys.modules)))
"""


EARLY = """
import sys
import acp_manifold.bridge.cli
from acp_manifold.bridge.plugins import plugins
from acp_manifold.bridge.serve import EARLY
print(*sorted(name for name, plugin in plugins(EARLY).items() if callable(plugin.load())))
print(*sorted({"typing", "logging", "pathlib", "json", "shutil", "acp_manifold.bridge.backend"} & set(sys.modules)))
"""


def test_an_app_server_is_started_before_nearly_everything_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=True, timeout=60)
    begun, heavy = done.stdout.split("\n")[:2]
    assert begun == "codex"
    assert heavy == ""


def test_backends_are_found_before_the_event_loop_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    found, heavy = done.stdout.split("\n")[:2]
    assert found == "claude codex"
    assert heavy == ""


LATER = {
    "uuid",
    "platform",
    "pydantic",
    "click",
    "watchfiles._rust_notify",
    "acp_manifold.bridge.session",
    "acp_manifold.bridge.cursors",
    "acp_manifold.bridge.history",
    "acp_manifold.adapters.claude.guards",
    "acp_manifold.adapters.claude.scan",
    "acp_manifold.adapters.claude.session",
    "acp_manifold.translators.claude.records",
    "acp_manifold.bridge.link_v2",
    "acp_manifold.bridge.methods.v2",
    "acp_manifold.translators.acp.patches",
    "acp_manifold.translators.acp.v2",
    "acp_manifold.translators.acp.v2_options",
    "acp_manifold.translators.acp.v2_requests",
    "acp_manifold.translators.acp.v2_telling",
}
"""What no answer to `initialize` needs, and nobody waits for who only asks for that."""


def test_initialize_is_answered_without_what_only_sessions_need(tmp_path: Path) -> None:
    ask = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "acp_manifold.bridge"],
        input=ask,
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
    )
    assert b'"protocolVersion":1' in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "acp_manifold.bridge.hub" in imported
    assert imported & LATER == set()
