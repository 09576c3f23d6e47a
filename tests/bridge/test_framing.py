from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.bridge.framing import LINE_LIMIT, Framed, LineFramer, TooLong

SEPARATORS = "\u2028 \u2029 \u0085 \u000b \u000c"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The same bytes in pieces, cut at these places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]


def frame(pieces: list[bytes], limit: int = LINE_LIMIT) -> list[Framed]:
    framer = LineFramer(limit)
    return [line for piece in pieces for line in framer.feed(piece)] + framer.finish()


def kinds(lines: list[Framed]) -> list[Framed]:
    """The lines; of those that are too long only that they are: how much had come by then depends on the cut."""
    return [TooLong(0) if isinstance(line, TooLong) else line for line in lines]


def expected(data: bytes, limit: int) -> list[Framed]:
    """What the lines are, said as plainly as possible."""
    lines: list[Framed] = []
    for raw in data.split(b"\n"):
        if len(raw) > limit:
            lines.append(TooLong(0))
        elif raw.strip():
            lines.append(raw.removesuffix(b"\r"))
    return lines


rich_bytes = st.lists(
    st.one_of(st.binary(max_size=20), st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"{}", b"x" * 11])),
    max_size=30,
).map(b"".join)


@given(data=rich_bytes, places=st.lists(st.integers(0, 400), max_size=12))
def test_any_split_of_any_bytes_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    assert kinds(frame(cut(data, places), limit=10)) == expected(data, 10)


@given(data=rich_bytes)
def test_bytes_that_come_one_by_one_give_the_same_lines(data: bytes) -> None:
    assert kinds(frame([data[at : at + 1] for at in range(len(data))], limit=10)) == expected(data, 10)


@pytest.mark.case("F02")
def test_only_the_byte_0a_ends_a_line() -> None:
    line = f'{{"text":"{SEPARATORS}"}}'.encode()
    assert frame([line + b"\r\n\n\r\n" + line + b"\n"]) == [line, line]


def test_one_carriage_return_is_taken_off_and_no_more() -> None:
    assert frame([b"a\r\r\n", b"b\rc\n"]) == [b"a\r", b"b\rc"]


def test_a_last_line_without_newline_is_given_at_the_end() -> None:
    framer = LineFramer()
    assert framer.feed(b"one\ntw") == [b"one"]
    assert framer.feed(b"o") == []
    assert framer.finish() == [b"two"]
    assert framer.finish() == []


@pytest.mark.case("F01")
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537])
def test_a_line_around_64_kib_is_a_line(size: int) -> None:
    line = b"x" * size
    assert frame([line + b"\n" + line + b"\n"]) == [line, line]
    assert frame(cut(line + b"\n", [65_536, 65_535])) == [line]


@pytest.mark.case("F01")
def test_a_line_over_the_limit_is_reported_once_and_at_once() -> None:
    framer = LineFramer(100)
    assert framer.feed(b"ok\n" + b"x" * 101) == [b"ok", TooLong(101)]
    assert framer.feed(b"x" * 1000) == []
    assert framer.feed(b"x" * 1000 + b"\nnext\n") == [b"next"]


def test_a_line_of_exactly_the_limit_is_no_error() -> None:
    assert frame([b"x" * 50, b"x" * 50, b"\n"], limit=100) == [b"x" * 100]
    assert frame([b"x" * 50, b"x" * 51, b"\n"], limit=100) == [TooLong(101)]


def test_a_line_over_the_limit_that_never_ends_is_one_error() -> None:
    assert frame([b"x" * 60] * 5, limit=100) == [TooLong(120)]


def test_the_rest_of_an_over_long_line_is_not_kept() -> None:
    framer = LineFramer(1024)
    chunk = b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(200):
            framer.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.case("F01")
def test_the_longest_line_costs_no_more_for_each_byte_than_a_short_one() -> None:
    def seconds(size: int) -> float:
        framer = LineFramer()
        chunk = b"x" * 65_536
        started = time.process_time()
        for _ in range(size // len(chunk)):
            framer.feed(chunk)
        assert len(framer.finish()) == 1
        return time.process_time() - started

    # 32 times the bytes: linear work takes 32 times as long, quadratic 1024 times.
    assert seconds(LINE_LIMIT) < 8 * 32 * max(seconds(LINE_LIMIT // 32), 0.002)
