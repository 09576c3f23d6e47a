"""Links in a prompt as Claude Code takes them, and how they are found again in a transcript.

A file is mentioned as a person does it (`@/a/file`, `@"/a b"#L2-3`); Claude Code 2.1.332 adds what is in it to the
prompt if the mention is in the last text of it, and leaves it to the model to read it otherwise. Anything else is a
Markdown link. A link is a block of its own in a transcript, which text of a person that looks like one hardly is.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from acp_manifold.translators.attached import TARGET, file_path, label, name_of, target
from acp_manifold.translators.updates import ResourceLink

_LINES = re.compile(r"L[0-9]+(?:-[0-9]+)?")
_PLAIN = re.compile(r"[\w./+-]+(?:#L[0-9-]+)?")
_MENTION = re.compile(r'\s*@(?:"(/[^"#\n]*)(#L[0-9]+(?:-[0-9]+)?)?"|(/[^\s"#]*)(#L[0-9]+(?:-[0-9]+)?)?)\s*')
_LINK = re.compile(rf"\s*\[(?!@)((?:(?!\]\()[^\n])*)\]\(({TARGET})\)\s*")


def mention(uri: str, name: str) -> str:
    """A file, or lines of it, as a mention; anything else, and what a mention can't say, as a Markdown link."""
    path, parts = file_path(uri), urlsplit(uri)
    if path is None or parts.query or any(mark in path for mark in '"\n#') or not path.startswith("/"):
        return f"[{label(name)}]({target(uri)})"
    if parts.fragment and not _LINES.fullmatch(parts.fragment):
        return f"[{label(name)}]({target(uri)})"
    place = f"{path}#{parts.fragment}" if parts.fragment else path
    return f"@{place}" if _PLAIN.fullmatch(place) else f'@"{place}"'


def mentioned(said: str) -> ResourceLink | None:
    """The link that a block of text is, if it is one and nothing else; a file is called by its own name."""
    if (match := _MENTION.fullmatch(said)) is not None:
        path, lines = match[1] or match[3], match[2] or match[4] or ""
        uri = f"file://{quote(path)}{lines}"
        return ResourceLink(uri, name_of(uri))
    match = _LINK.fullmatch(said)
    return ResourceLink(match[2], match[1]) if match is not None and urlsplit(match[2]).scheme else None
