"""Resources in a prompt as text, for CLIs that know only text, and how they are found again in a CLI's store.

A resource stands as a Markdown link where the person put it, and its text follows behind everything,
in `<context ref="URI">`: the form that the CLIs' other ACP agents use too, so that sessions of theirs
are told as well as ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

from .updates import BlobResource, Content, Image, ResourceLink, Text, TextResource

_CONTEXT = re.compile(r'\s*<context ref="([^"\n]*)"[^>\n]*>\n(.*)\n</context>\s*', re.DOTALL)
_LINK = re.compile(r"\s*\[@([^\]\n]*)\]\((/[^)\n]*|[^)\s]+)\)\s*")
_UNSAFE = str.maketrans({'"': "%22", "\n": "%0A", "\r": "%0D", " ": "%20", "(": "%28", ")": "%29"})


def name_of(uri: str) -> str:
    """What to call the thing behind a URI: its file's name where it has one."""
    return unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2] or uri


def link(uri: str, name: str | None = None) -> str:
    """A resource where the person put it; a path stays as it is, since a model is to open it."""
    shown = (name or name_of(uri)).replace("]", "").replace("\n", " ")
    return f"[@{shown}]({uri if uri.startswith('/') else uri.translate(_UNSAFE)})"


def context(resource: TextResource) -> str:
    """The text of a resource, for the end of the prompt."""
    return f'<context ref="{resource.uri.translate(_UNSAFE)}">\n{resource.text}\n</context>'


def is_context(said: str) -> bool:
    """Whether a block of text is a resource and nothing else."""
    return _CONTEXT.fullmatch(said) is not None


def file_path(uri: str) -> str | None:
    """The absolute path a `file:` URI names; None for other URIs."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path) or None


def restored(blocks: Iterable[Content]) -> list[Content]:
    """The content of a stored message as it was sent: resources where their links stand.

    A document or a picture takes the URI of a link right before it; a text without its link stays at the end.
    """
    found = list(blocks)
    texts: dict[str, str] = {}
    rest: list[Content] = []
    for block in found:
        match = _CONTEXT.fullmatch(block.text) if isinstance(block, Text) else None
        if match is None:
            rest.append(block)
        else:
            texts[match[1]] = match[2]
    out: list[Content] = []
    for block in rest:
        match = _LINK.fullmatch(block.text) if isinstance(block, Text) else None
        if match is not None:
            body = texts.pop(match[2], None)
            uri = f"file://{quote(match[2])}" if match[2].startswith("/") else match[2]
            out.append(ResourceLink(uri, match[1]) if body is None else TextResource(uri, body))
        elif isinstance(block, BlobResource | Image) and out and isinstance(said := out[-1], ResourceLink):
            out[-1] = block._replace(uri=said.uri)
        else:
            out.append(block)
    return [*out, *(TextResource(uri, body) for uri, body in texts.items())]
