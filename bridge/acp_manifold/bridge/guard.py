"""Our end of the guardian: it runs while there are children, and knows which.

There is one for the process, as there is one life to outlive. It starts with the first child and
ends with the last, so that a bridge without children has no process and no open file of this.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_ROOT: Final = str(Path(__file__).resolve().parents[2])
"""The directory that holds the import package: `-I -S` leaves nothing but the standard library on the path."""

_PROGRAM: Final = f"import sys; sys.path.insert(0, {_ROOT!r}); from acp_manifold.bridge.guardian import main; main()"


class Guard:
    """Tells the guardian, which it starts and stops, whom to end should we not be able to."""

    def __init__(self) -> None:
        self._wards: set[tuple[int, str]] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def pid(self) -> int | None:
        """The guardian's process id while there is one."""
        return None if self._process is None else self._process.pid

    def add(self, pid: int, mark: str) -> None:
        """A child was started: its group's id and its mark."""
        self._wards.add((pid, mark))
        if self._process is not None:
            self._tell("+", pid, mark)
        elif self._start():
            for ward in list(self._wards):
                self._tell("+", *ward)

    def remove(self, pid: int, mark: str) -> None:
        """Nothing of this child is left."""
        self._wards.discard((pid, mark))
        if self._wards:
            self._tell("-", pid, mark)
        else:
            self._stop()

    def _start(self) -> bool:
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
        except OSError as exc:
            logger.warning("no guardian could be started, children may outlive a crash: %s", exc)
            os.close(writing)
            return False
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        return True

    def _stop(self) -> None:
        if self._process is None:
            return
        os.close(self._pipe)
        # It has nobody to end, so it need not be asked nicely, and is reaped at once.
        self._process.kill()
        self._process.wait()
        self._process = None

    def _tell(self, sign: str, pid: int, mark: str) -> None:
        if self._process is None:
            return
        try:
            os.write(self._pipe, f"{sign} {pid} {mark}\n".encode())
        except OSError as exc:
            # The next child starts another one, which is told of all.
            logger.warning("the guardian is gone: %s", exc)
            self._stop()


guard: Final = Guard()
"""The guard of this process."""
