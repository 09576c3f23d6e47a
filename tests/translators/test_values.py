"""Our `NamedTuple` is that of `typing`, whatever is asked of it; only its making is cheaper."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import NamedTuple as Typed

import pytest

from acp_manifold.translators.values import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    """Upwards."""
    name: str | None = None

    @property
    def total(self) -> int:
        """Both together."""
        return self.x + self.y


class TypedPoint(Typed):
    """A place."""

    x: int
    y: int = 2
    name: str | None = None

    @property
    def total(self) -> int:
        """Both together."""
        return self.x + self.y


class Wide(NamedTuple):
    """More fields than there are descriptors ready."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int
    j: int
    k: int
    l: int  # noqa: E741
    m: int
    n: int
    o: int
    p: int
    q: int
    r: int = 18


@pytest.mark.parametrize("kind", [Point, TypedPoint])
def test_a_value_is_made_read_compared_and_taken_apart(kind: type[Point]) -> None:
    first, second = kind(1), kind(x=1, y=2, name=None)
    assert first == second
    assert list(first) == [1, 2, None]
    assert hash(first) == hash(second)
    assert (first.x, first.y, first.name, first.total) == (1, 2, None, 3)
    assert repr(first) == f"{kind.__name__}(x=1, y=2, name=None)"
    assert first._replace(y=5) == kind(1, 5)
    assert first._asdict() == {"x": 1, "y": 2, "name": None}
    assert (kind._fields, kind._field_defaults) == (("x", "y", "name"), {"y": 2, "name": None})
    assert kind._make([7, 8, "n"]) == kind(7, 8, "n")
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301
    match first:
        case kind(x, y, None):
            assert (x, y) == (1, 2)
        case _:
            raise AssertionError("the class pattern takes no positions")


@pytest.mark.parametrize("kind", [Point, TypedPoint])
def test_what_can_not_be_is_refused(kind: type[Point]) -> None:
    wrongs: list[Callable[[], object]] = [
        lambda: kind(),  # type: ignore[call-arg] # pyright: ignore
        lambda: kind(1, 2, "n", 4),  # type: ignore[call-arg] # pyright: ignore
        lambda: kind(1, z=2),  # type: ignore[call-arg] # pyright: ignore
        lambda: kind._make([1]),
    ]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="z"):
        kind(1)._replace(z=2)  # type: ignore[call-arg] # pyright: ignore
    with pytest.raises(AttributeError):
        kind(1).x = 2  # type: ignore[misc] # pyright: ignore
    assert not hasattr(kind(1), "__dict__")


class Secret(NamedTuple):
    """A value that hides what it holds."""

    word: str

    def __repr__(self) -> str:
        return "Secret(...)"


def test_what_a_type_says_itself_counts() -> None:
    assert f"{Secret('hush')!r} {Secret('hush')}" == "Secret(...) Secret(...)"


def test_many_fields_are_all_there() -> None:
    wide = Wide(*range(17))
    assert (wide.a, wide.p, wide.q, wide.r) == (0, 15, 16, 18)


def test_a_field_without_a_default_can_not_follow_one_with_a_default() -> None:
    with pytest.raises(TypeError, match="default"):

        class Bad(NamedTuple):  # pyright: ignore
            x: int = 1
            y: int  # type: ignore[misc] # pyright: ignore
