"""What the program tells its status line, which nobody sees here: the model, the effort, the context, the cost.

Claude Code 2.1.332 calls a command with it as JSON when it comes up and behind each message, a third of a second late.
The command writes a file that only the person can read, and prints nothing, so that the screen stays as it is. It
stands in for a status line of the person's in this one program; their settings keep theirs.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.narrow import JsonObject, as_object

logger = logging.getLogger(__name__)


def file_of(folder: Path, session_id: str) -> Path:
    """Where the status of a session's program is."""
    return folder / f"{session_id}.status"


def command(folder: Path, session_id: str) -> str:
    """What the program is to run: whole files alone are ever there to be read."""
    path = shlex.quote(str(file_of(folder, session_id)))
    return f"umask 077; cat > {path}.new && mv {path}.new {path}"


@contextmanager
def told(folder: Path, session_id: str) -> Generator[None]:
    """For as long as the context is open the file may be there; one that a killed agent has left is not."""
    path = file_of(folder, session_id)
    path.unlink(missing_ok=True)
    try:
        yield
    finally:
        for left in (path, path.with_name(f"{path.name}.new")):
            left.unlink(missing_ok=True)


def read(path: Path) -> JsonObject | None:
    """What was told last; None as long as nothing was."""
    try:
        with open_to_read(path) as file:
            return as_object(json.loads(file.read()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        logger.info("%s can't be read: %s", path, exc)
        return None
