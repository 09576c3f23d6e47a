"""The archive as another adapter keeps it: a prefix of the title.

claude-agent-acp 0.101.0 archives a session by a custom title that begins with `[archived] `. Here that is
read as what it means, and not shown as part of the title.
"""

from __future__ import annotations

import re

PREFIX = "[archived] "

_MARKS = re.compile(r"(?:\s*\[archived\]\s+(?=\S))+")


def visible(title: str) -> str:
    """A title without the prefix, however often it is there."""
    mark = _MARKS.match(title)
    return title[mark.end() :] if mark is not None else title


def says_archived(title: str) -> bool:
    """Whether a title says that its session is archived."""
    return _MARKS.match(title) is not None
