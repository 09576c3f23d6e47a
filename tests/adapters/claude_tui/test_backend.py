"""The backend as the hub finds it: only when named, never beside the other one that has its sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from acp_manifold.adapters.claude.login import default_mode
from acp_manifold.adapters.claude_tui import ClaudeTuiBackend
from acp_manifold.bridge.backends import NoBackend, backend_names, find_backends

PROGRAM = """
import sys
from acp_manifold.bridge.backends import find_backends
print(*[backend.name for backend in find_backends(%r)])
names = ("acp_manifold.adapters.claude_tui", "pyte", "ptyprocess", "h11")
print(*sorted(name for name in names if name in sys.modules))
"""


def found(*names: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM % (names,)], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split("\n")[:2]


def test_it_is_served_when_named_and_nothing_of_it_is_imported_otherwise() -> None:
    assert found() == ["claude codex", ""]
    # Named, it is found without what a session of it takes.
    assert found("claude-tui") == ["claude-tui", "acp_manifold.adapters.claude_tui"]
    assert "only when named: claude-tui" in backend_names()


def test_the_two_that_have_the_same_sessions_are_not_served_together() -> None:
    with pytest.raises(NoBackend, match="claude and claude-tui have the same sessions: serve one of them"):
        find_backends(["claude", "claude-tui"])
    assert [backend.name for backend in find_backends(["claude-tui", "codex"])] == ["claude-tui", "codex"]


def test_without_terminals_it_is_not_offered_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    backend = ClaudeTuiBackend({"PATH": "/nowhere"})
    assert backend.program() is None


def test_the_person_is_asked_unless_their_settings_say_how_sessions_begin(tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert default_mode(environ) is None
    (tmp_path / "settings.json").write_text(json.dumps({"permissions": {"defaultMode": "acceptEdits"}}))
    assert default_mode(environ) == "acceptEdits"
