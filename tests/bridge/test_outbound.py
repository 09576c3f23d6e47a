from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from acp_manifold.bridge.outbound import BLOCK_SIZE, HIGH_WATER, LANE_HIGH_WATER, MERGE_SIZE, Outbound

pytestmark = pytest.mark.anyio


class Reader:
    """The other side: takes a block whenever it is allowed to."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.failure: Exception | None = None
        self._gate = anyio.Event()
        self._gate.set()
        self._started = anyio.Event()

    @property
    def text(self) -> str:
        return b"".join(self.blocks).decode()

    def stall(self) -> None:
        self._gate = anyio.Event()
        self._started = anyio.Event()

    def go_on(self) -> None:
        self._gate.set()

    async def write_begun(self) -> None:
        await self._started.wait()

    async def write(self, data: bytes) -> None:
        self._started.set()
        await self._gate.wait()
        if self.failure is not None:
            raise self.failure
        self.blocks.append(data)


def chunk(text: str) -> bytes:
    return f"<{text}>".encode()


@asynccontextmanager
async def writing(reader: Reader) -> AsyncGenerator[Outbound]:
    """An outbound that runs; at the end it is closed, and all is written."""
    outbound = Outbound(reader.write)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbound.run)
            await checkpoint()
            yield outbound
            reader.go_on()
            outbound.close()


async def test_what_is_sent_at_once_is_one_write_in_order() -> None:
    reader = Reader()
    async with writing(reader) as outbound:
        outbound.send({"a": 1})
        outbound.send_line(b"raw")
        outbound.send_text("lane", "k", "x", chunk)
        outbound.send({"b": 2})
    assert reader.blocks == [b'{"a":1}\nraw\n<x>\n{"b":2}\n']


async def test_what_was_queued_before_it_runs_is_written_too() -> None:
    reader = Reader()
    outbound = Outbound(reader.write)
    outbound.send_line(b"early")
    outbound.close()
    with anyio.fail_after(5):
        await outbound.run()
    assert reader.text == "early\n"


async def test_chunks_stay_apart_while_the_reader_keeps_up() -> None:
    reader = Reader()
    async with writing(reader) as outbound:
        for word in ("one ", "two ", "three"):
            outbound.send_text("lane", "k", word, chunk)
    assert reader.text == "<one >\n<two >\n<three>\n"


async def test_adjoining_chunks_of_one_message_merge_when_the_reader_falls_behind() -> None:
    reader = Reader()
    reader.stall()
    async with writing(reader) as outbound:
        outbound.send_line(b"first")
        await reader.write_begun()
        for word in ("a", "b", "c"):
            outbound.send_text("lane", "k", word, chunk)
        outbound.send_text("lane", "other", "d", chunk)
        outbound.send_line(b"between")
        outbound.send_text("lane", "other", "e", chunk)
        outbound.send_text("lane", "other", "f", chunk)
    assert reader.text == "first\n<abc>\n<d>\nbetween\n<ef>\n"


async def test_chunks_of_two_lanes_that_alternate_are_merged_each_in_its_own() -> None:
    reader = Reader()
    reader.stall()
    async with writing(reader) as outbound:
        outbound.send_line(b"first")
        await reader.write_begun()
        for number in ("1", "2", "3"):
            outbound.send_text("a", "a", "a" + number, chunk)
            outbound.send_text("b", "b", "b" + number, chunk)
        outbound.send_line(b"of a", "a")
        outbound.send_text("a", "a", "behind", chunk)
        outbound.send_text("b", "b", "b4", chunk)
        outbound.send_line(b"of all")
        outbound.send_text("b", "b", "b5", chunk)
    assert reader.text == "first\n<a1a2a3>\n<b1b2b3b4>\nof a\n<behind>\nof all\n<b5>\n"


async def test_a_merged_chunk_has_its_bound() -> None:
    reader = Reader()
    reader.stall()
    half = "x" * (MERGE_SIZE // 2)
    async with writing(reader) as outbound:
        outbound.send_line(b"first")
        await reader.write_begun()
        for _ in range(5):
            outbound.send_text("lane", "k", half, chunk)
    assert [len(line) for line in reader.text.split("\n")[1:-1]] == [
        MERGE_SIZE + 2,
        MERGE_SIZE + 2,
        MERGE_SIZE // 2 + 2,
    ]


async def test_many_lines_are_written_in_blocks_of_bounded_size() -> None:
    reader = Reader()
    line = b"x" * 999
    async with writing(reader) as outbound:
        for _ in range(1000):
            outbound.send_line(line)
    assert max(len(block) for block in reader.blocks) < BLOCK_SIZE + 1000
    assert b"".join(reader.blocks) == (line + b"\n") * 1000


async def test_nothing_is_taken_after_close() -> None:
    reader = Reader()
    async with writing(reader) as outbound:
        outbound.send_line(b"last")
        outbound.close()
        outbound.send_line(b"late")
        outbound.send_text("lane", "k", "late", chunk)
    assert reader.text == "last\n"


@pytest.mark.parametrize("failure", [BrokenPipeError(), ConnectionResetError(), anyio.BrokenResourceError()])
async def test_a_broken_link_ends_the_writer_and_tells_once(failure: Exception) -> None:
    reader = Reader()
    reader.failure = failure
    told: list[str] = []
    outbound = Outbound(reader.write, lambda: told.append("broken"))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbound.run)
            outbound.send_line(b"x")
            await outbound.wait_broken()
        outbound.send_line(b"y")
        await outbound.room("lane")
    assert told == ["broken"]
    assert outbound.broken
    assert outbound.pending == 0


async def test_a_producer_waits_while_too_much_is_queued_altogether() -> None:
    reader = Reader()
    reader.stall()
    went_on_at: list[int] = []
    async with writing(reader) as outbound:
        await outbound.room("lane")
        for number in range(HIGH_WATER // 65_536 + 6):
            outbound.send_line(b"x" * 65_536, number)
        assert outbound.pending > HIGH_WATER

        async def produce() -> None:
            await outbound.room("lane")
            went_on_at.append(outbound.pending)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce)
            await checkpoint()
            assert went_on_at == []
            reader.go_on()
    assert len(went_on_at) == 1 and went_on_at[0] <= HIGH_WATER
    assert outbound.pending == 0


async def test_a_lane_that_floods_waits_and_the_others_do_not() -> None:
    reader = Reader()
    reader.stall()
    went_on: list[str] = []
    async with writing(reader) as outbound:
        for _ in range(LANE_HIGH_WATER // 65_536 + 6):
            outbound.send_line(b"x" * 65_536, "flood")

        async def produce(lane: str) -> None:
            await outbound.room(lane)
            went_on.append(lane)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce, "flood")
            tasks.start_soon(produce, "calm")
            await checkpoint()
            await checkpoint()
            assert went_on == ["calm"]
            reader.go_on()
    assert went_on == ["calm", "flood"]


async def test_merged_text_counts_for_its_lane() -> None:
    reader = Reader()
    reader.stall()
    async with writing(reader) as outbound:
        outbound.send_line(b"first")
        await reader.write_begun()
        for _ in range(LANE_HIGH_WATER // 1000 + 1):
            outbound.send_text("lane", "k", "x" * 1000, lambda text: text.encode())
        went_on = anyio.Event()

        async def produce() -> None:
            await outbound.room("lane")
            went_on.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce)
            await checkpoint()
            assert not went_on.is_set()
            reader.go_on()
    assert went_on.is_set()
    assert outbound.pending == 0


async def test_a_producer_that_waits_goes_on_when_the_link_breaks() -> None:
    reader = Reader()
    reader.stall()
    async with writing(reader) as outbound:
        reader.failure = BrokenPipeError()
        for _ in range(HIGH_WATER // 65_536 + 2):
            outbound.send_line(b"x" * 65_536)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbound.room, "lane")
            await reader.write_begun()
            reader.go_on()
    assert outbound.broken


async def test_a_chunk_that_can_not_be_rendered_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    def fail(text: str) -> bytes:
        raise ValueError(text)

    reader = Reader()
    async with writing(reader) as outbound:
        outbound.send_text("lane", "k", "bad", fail)
        outbound.send_line(b"good")
    assert reader.text == "good\n"
    assert outbound.pending == 0
    assert "could not be rendered" in caplog.text


async def test_an_object_that_is_no_json_is_refused_at_once() -> None:
    reader = Reader()
    async with writing(reader) as outbound:
        with pytest.raises(TypeError):
            outbound.send({"x": object()})
        outbound.send({"x": 1})
    assert reader.text == '{"x":1}\n'
