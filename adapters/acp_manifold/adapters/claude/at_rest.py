"""Renaming a session that no process of ours serves: a `custom-title` record at the end of its transcript.

The record is the one that claude-agent-sdk 0.2.189 `rename_session()` writes, but always on a line of
its own: behind a line that was cut off the SDK's can't be read. And the title is in the form the CLI
gives to those it writes itself, so that it stays what it is when the CLI next has the session. A test
compares the two.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from acp_manifold.adapters.claude.regular import open_descriptor
from acp_manifold.adapters.claude.scan import custom_title_after
from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.translators.claude.titles import stored_form


def write_title(path: Path, session_id: str, title: str) -> str:
    """Append the record and give back the title that is now read from the file.

    Args:
        path: The transcript; not created if it has gone meanwhile.
        session_id: The session's id.
        title: Not blank.

    Raises:
        FileNotFoundError: The transcript has gone.
        InvalidRequest: The transcript can't be written or doesn't hold the title afterwards.
    """
    record = {"type": "custom-title", "customTitle": stored_form(title), "sessionId": session_id}
    line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    try:
        descriptor = open_descriptor(path, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise InvalidRequest(
            f"The transcript {path} can't be written: {exc.strerror}", {"reason": "read_only"}
        ) from exc
    try:
        size = os.fstat(descriptor).st_size
        cut_off = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" + line if cut_off else line)
    finally:
        os.close(descriptor)
    stored = custom_title_after(path, size)
    if stored is None:
        raise InvalidRequest(f"The title could not be read back from {path}", {"reason": "not_stored"})
    return stored
