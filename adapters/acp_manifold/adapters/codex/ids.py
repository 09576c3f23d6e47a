"""Thread ids of Codex: UUIDs as Codex writes them, and nothing else is ever sent to it as one.

codex-cli 0.163.0 reads an id in capitals as the same; to us a session has one name, by which it is found and locked.
"""

from __future__ import annotations

import re

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_thread_id(value: str) -> bool:
    """Whether it has the shape of a thread id, in lower case."""
    return _ID.fullmatch(value) is not None
