"""Entry points, read as importlib.metadata reads them."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from acp_manifold.bridge.backends import GROUP, NoBackend, find_backends
from acp_manifold.bridge.plugins import plugins

INSTALLED = """\
[console_scripts]
x = a:b
; a remark
[acp_manifold.backends]
one = some.module:Thing
two=other.module : Deep.er [extra]

[other]
three = c:d
"""


def test_it_agrees_with_the_standard_library_about_what_is_installed() -> None:
    for group in (GROUP, "acp_manifold.commands", "console_scripts", "no.such.group"):
        expected = {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=group)}
        assert {name: plugin.target for name, plugin in plugins(group).items()} == expected


def test_one_section_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "thing-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(INSTALLED)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    found = plugins("acp_manifold.backends")
    assert {name: plugin.target for name, plugin in found.items()} == {
        "one": "some.module:Thing",
        "two": "other.module : Deep.er",
    }


def test_an_unknown_backend_is_named_with_those_there_are() -> None:
    with pytest.raises(NoBackend, match="'nobody'.*claude, claude-tui, codex"):
        find_backends(["nobody"])


def test_a_cli_that_is_not_installed_is_absent_and_none_at_all_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from acp_manifold.adapters.claude import ClaudeBackend
    from acp_manifold.adapters.codex.backend import CodexBackend

    def missing(_backend: object) -> None:
        return None

    monkeypatch.setattr(ClaudeBackend, "program", missing)
    assert [backend.name for backend in find_backends()] == ["codex"]
    with pytest.raises(NoBackend, match="install"):
        find_backends(["claude"])
    monkeypatch.setattr(CodexBackend, "program", missing)
    with pytest.raises(NoBackend, match=r"(?s)Claude Code: .*Codex: "):
        find_backends()
