"""Our end of the guardian: it runs while there are children or private folders, and knows which.

There is one for the process, as there is one life to outlive. It starts with the first child and
ends with the last, so that a bridge without children has no process and no open file of this.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_ROOT: Final = str(Path(__file__).resolve().parents[2])
"""The directory that holds the import package: `-I -S` leaves nothing but the standard library on the path."""

_PROGRAM: Final = f"import sys; sys.path.insert(0, {_ROOT!r}); from acp_manifold.bridge.guardian import main; main()"


class Guard:
    """Tells the guardian, which it starts and stops, whom to end should we not be able to."""

    def __init__(self) -> None:
        self._wards: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def pid(self) -> int | None:
        """The guardian's process id while there is one."""
        return None if self._process is None else self._process.pid

    def add(self, pid: int, mark: str) -> None:
        """A child was started: its group's id and its mark."""
        self._add(f"child {pid} {mark}")

    def remove(self, pid: int, mark: str) -> None:
        """Nothing of this child is left."""
        self._remove(f"child {pid} {mark}")

    @contextmanager
    def private_folder(self) -> Generator[Path]:
        """A temporary folder for files that nobody but the person may read; gone at the end, also at a killed bridge's.

        Raises:
            OSError: It can't be made.
        """
        # Not at the top: few sessions need one.
        import shutil
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="acp-manifold-"))
        ward = f"folder {os.fsencode(folder).hex()}"
        self._add(ward)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._remove(ward)

    def _add(self, ward: str) -> None:
        self._wards.add(ward)
        if self._process is not None:
            self._tell(f"+ {ward}")
        elif self._start():
            for known in list(self._wards):
                self._tell(f"+ {known}")

    def _remove(self, ward: str) -> None:
        self._wards.discard(ward)
        if self._wards:
            self._tell(f"- {ward}")
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

    def _tell(self, line: str) -> None:
        if self._process is None:
            return
        try:
            os.write(self._pipe, f"{line}\n".encode())
        except OSError as exc:
            # The next child starts another one, which is told of all.
            logger.warning("the guardian is gone: %s", exc)
            self._stop()


guard: Final = Guard()
"""The guard of this process."""
