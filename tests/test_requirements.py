"""Which field reports have a test, and that no test names one that nobody wrote down."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from .cases import CASES, HELD

TESTS = Path(__file__).parent


@functools.cache
def marked_cases() -> dict[str, list[str]]:
    """Case id -> the test files that mark a test with it."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for case in cases_in(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(case, []).append(str(path.relative_to(TESTS)))
    return found


def cases_in(tree: ast.AST) -> Iterator[str]:
    """The arguments of all `pytest.mark.case(...)` in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "case":
            for argument in node.args:
                yield str(ast.literal_eval(argument))


def test_every_case_that_is_to_be_held_has_a_test() -> None:
    assert HELD - set(marked_cases()) == set()


def test_no_test_names_a_case_that_is_not_written_down() -> None:
    unknown = {case: files for case, files in marked_cases().items() if case not in CASES}
    assert unknown == {}
