"""One bridge for a session: a lock that is taken before its process is started.

The CLI writes itself into its registry only after a third of a second (Claude Code 2.1.332), and
lets two processes have one session. Two agents that open the same one at the same moment would not
see each other there. The system frees the lock of an agent that dies.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.bridge.ledger import state_directory

logger = logging.getLogger(__name__)


def lock_folder() -> Path:
    """Where the locks of all agents of this person are."""
    return state_directory() / "claude-sessions"


class SessionLock:
    """The lock of one session; it moves with a conversation that begins anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._descriptor = -1

    def take(self, session_id: str) -> None:
        """Have a session, and no longer the one before; where no lock can be made, none is needed to go on.

        Raises:
            InvalidRequest: Another agent has it.
        """
        path = self._folder / f"{session_id}.lock"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = _taken(path, session_id)
        except OSError as exc:
            logger.warning("claude: session %s has no lock against other agents: %s", session_id, exc)
            return
        self.free()
        self._path, self._descriptor = path, descriptor

    def free(self) -> None:
        """Have no session any more."""
        if self._path is None:
            return
        # Taken away first: who opens it from now on makes a new one.
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._path = None


@contextmanager
def locked(folder: Path, session_id: str) -> Generator[SessionLock]:
    """Have a session for as long as the context is open.

    Args:
        folder: Where the locks of all agents are.
        session_id: The session.

    Raises:
        InvalidRequest: Another agent has it.
    """
    lock = SessionLock(folder)
    lock.take(session_id)
    try:
        yield lock
    finally:
        lock.free()


def _taken(path: Path, session_id: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise InvalidRequest(
                f"Session {session_id} is open in another acp-manifold{f', pid {holder}' if holder else ''}. "
                "Close it there first",
                {"reason": "thread_active_writer", "sessionId": session_id},
            ) from exc
        if _is_still(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the file locked is the one that is there, not one taken away in the moment before."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
