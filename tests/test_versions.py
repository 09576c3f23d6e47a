"""Which live tests run in both versions of the protocol: each module has some, or there is a reason why not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import conftest

LIVE = Path(__file__).parent / "live"

V1_ALONE = {
    "test_acpx": "acpx speaks v1",
    "test_client": "of the test client itself; what v2 adds to it, all the others need",
    "test_codex_schema": "no client: what the app-server says of itself",
    "test_commands": "no client: commands of a terminal",
    "test_demo": "the demo's editor speaks v1",
    "test_python_sdk": "the official Python SDK has no v2",
    "test_recorded": "no client: commands that read recordings; replays run in both in tests/replay",
    "test_tui": "of what is typed into the program and read from it; what clients see is tested with the others",
    "test_typescript_sdk": "the SDK has an entry point for each version: a script for each, in a test for each",
}
"""The modules of which no test runs in both, and why."""

MARKS = {name for name, mark in vars(conftest).items() if isinstance(mark, pytest.MarkDecorator)}
"""The decorators that give a test both versions; those of `conftest.py` all do."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(LIVE.glob("test_*.py")):
        yield path.stem, ast.parse(path.read_text(encoding="utf-8"))


def is_of_both(test: ast.AsyncFunctionDef | ast.FunctionDef) -> bool:
    """Whether a decorator of a test says which versions it runs in."""
    for decorator in test.decorator_list:
        words = {node.value for node in ast.walk(decorator) if isinstance(node, ast.Constant)}
        if "version" in words or (isinstance(decorator, ast.Name) and decorator.id in MARKS):
            return True
    return False


def test_each_live_module_has_tests_in_both_versions_or_a_reason_why_not() -> None:
    assert {"both_versions", "all_and_v2"} <= MARKS
    alone: set[str] = set()
    for name, tree in modules():
        functions = [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)]
        tests = [function for function in functions if function.name.startswith("test_")]
        assert tests, name
        if not any(is_of_both(test) for test in tests):
            alone.add(name)
    assert alone == V1_ALONE.keys()
