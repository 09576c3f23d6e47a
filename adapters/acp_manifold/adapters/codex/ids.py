"""Thread ids of Codex: UUIDs, and nothing else is ever sent to it as one."""

from __future__ import annotations

import re

_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def is_thread_id(value: str) -> bool:
    """Whether it has the shape of a thread id."""
    return _ID.fullmatch(value) is not None
