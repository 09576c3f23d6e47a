"""What is imported before a CLI is started, which is what every start of the agent waits for."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from acp_manifold.bridge.serve import serve
from acp_manifold.bridge.backends import find_backends
print(*[backend.name for backend in find_backends(())])
print(*sorted({"asyncio", "anyio", "dataclasses", "pydantic", "click", "sqlite3", "watchfiles"} & set(sys.modules)))
"""


def test_backends_are_found_before_the_event_loop_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    found, heavy = done.stdout.split("\n")[:2]
    assert found == "claude codex"
    assert heavy == ""
