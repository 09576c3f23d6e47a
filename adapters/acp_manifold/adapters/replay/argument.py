"""What stands behind `replay:`: a recording, or a folder of them, and how fast it is to be played.

`replay:FILE?speed=10` is ten times as fast as it was recorded, `?speed=instant` as fast as it goes; 1 is the default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from acp_manifold.bridge.backends import NoBackend
from acp_manifold.translators.values import NamedTuple

ENDINGS: Final = (".jsonl", ".jsonl.gz")
"""How the names of recordings end, in a folder."""


class Argument(NamedTuple):
    """What is to be replayed."""

    path: Path
    speed: float | None
    """How many times as fast as it was; None: no time passes."""


def parse(argument: str) -> Argument:
    """Read what stands behind `replay:`.

    Raises:
        NoBackend: It makes no sense; the message says what to write.
    """
    path, _, query = argument.partition("?")
    if not path:
        raise NoBackend("replay needs a recording: --backend replay:FILE, or replay:FOLDER")
    options = dict(parse_qsl(query, keep_blank_values=True))
    speed = options.pop("speed", "1")
    if options:
        raise NoBackend(
            f"replay knows no option {next(iter(options))!r}; there is: speed, as in replay:{path}?speed=10"
        )
    if speed == "instant":
        return Argument(Path(path), None)
    try:
        times = float(speed)
    except ValueError:
        times = 0.0
    if not 0 < times < float("inf"):
        raise NoBackend(f"speed={speed}: must be `instant`, or how many times as fast as it was recorded")
    return Argument(Path(path), times)


def files(path: Path) -> list[Path]:
    """The recordings in a folder, however deep, in the order of their names; or the one file.

    Raises:
        NoBackend: There is none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.name.endswith(ENDINGS) and file.is_file())
    if not found:
        raise NoBackend(f"the folder {path} holds no recordings: no file in it ends in {' or '.join(ENDINGS)}")
    return found
