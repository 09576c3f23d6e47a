"""A copy of a session: its transcript written anew under another id, at once.

`--fork-session` of Claude Code 2.1.332 writes nothing before the first prompt, so that nobody could find,
load or title the copy until then. Nothing of the source is locked or changed: another process may have
it open, and what it is writing just now is not in the copy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from anyio import to_thread

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.translators.claude.fork import Copying
from acp_manifold.translators.claude.records import decode_line
from acp_manifold.translators.narrow import JsonObject

_PIECE: Final = 1024 * 1024
"""Bytes copied in one go."""


async def fork(source: Path, target: Path, session_id: str, cwd: str) -> None:
    """Write the copy.

    Args:
        source: The transcript.
        target: Where the copy's goes; there is nothing yet.
        session_id: The copy's id.
        cwd: Where it goes on.

    Raises:
        FileNotFoundError: The transcript has gone.
        InvalidRequest: There is no message in it, or the copy can't be written.
    """
    unfinished = target.with_suffix(".copying")
    try:
        with closing(await to_thread.run_sync(_begin, source, unfinished, session_id, cwd)) as steps:
            while await to_thread.run_sync(next, steps, False):
                pass
        await to_thread.run_sync(os.rename, unfinished, target)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise InvalidRequest(f"{target} can't be written: {exc.strerror}", {"reason": "read_only"}) from exc
    finally:
        unfinished.unlink(missing_ok=True)


def _begin(source: Path, unfinished: Path, session_id: str, cwd: str) -> Generator[bool]:
    unfinished.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _copy(source, unfinished, session_id, cwd)


def _copy(source: Path, unfinished: Path, session_id: str, cwd: str) -> Generator[bool]:
    """Copy piece by piece; True after each."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    copying = Copying(source.stem, session_id, cwd, now)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open_to_read(source) as file, os.fdopen(descriptor, "wb") as copy:
        for piece in _pieces(iter(lambda: file.read(_PIECE), b"")):
            for line in piece:
                for record in decode_line(line)[0] if line.strip() else ():
                    copy.writelines(map(_line, copying.feed(record)))
            yield True
        copy.writelines(map(_line, copying.finish()))
    if copying.empty:
        raise InvalidRequest(
            f"Session {source.stem} has nothing to copy: no message was written yet", {"reason": "empty"}
        )


def _pieces(blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Whole lines, and at the end what is left: a line that is not finished can't be read, and costs itself alone."""
    rest: list[bytes] = []
    for block in blocks:
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            yield b"".join([*rest, whole]).split(b"\n")
            rest = [tail]
        else:
            rest.append(block)
    yield [b"".join(rest)]


def _line(record: JsonObject) -> bytes:
    try:
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # JSON may bring half a surrogate pair, and takes it back as an escape alone.
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"
