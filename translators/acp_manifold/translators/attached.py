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
TARGET = r"(?:[^()\s]|\([^()\s]*\))+"
"""What `target` makes of a URI, as a pattern."""
_PATH = r"/(?:[^()\n]|\([^()\n]*\))*"
_LINK = re.compile(rf"\s*\[@((?:(?!\]\()[^\n])*)\]\(({_PATH}|{TARGET})\)\s*")
_ANY_LINK = re.compile(rf"(?P<before>\w?)\[(?P<name>@(?:(?!\]\()[^\n])*)\]\((?:{_PATH}|{TARGET})\)")
_UNSAFE = str.maketrans({'"': "%22", "\n": "%0A", "\r": "%0D", " ": "%20"})
_PARENTHESES = str.maketrans({"(": "%28", ")": "%29"})


def name_of(uri: str) -> str:
    """What to call the thing behind a URI: its file's name where it has one."""
    return unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2] or uri


def label(name: str) -> str:
    """A name between the brackets of a Markdown link."""
    return name.replace("](", "] (").replace("\n", " ")


def target(uri: str) -> str:
    """A URI between the parentheses of a Markdown link."""
    written = uri.translate(_UNSAFE)
    return written if re.fullmatch(TARGET, written) else written.translate(_PARENTHESES)


def link(uri: str, name: str | None = None) -> str:
    """A resource where the person put it."""
    return f"[@{label(name or name_of(uri))}]({target(uri)})"


def link_to(uri: str, name: str | None = None) -> str:
    """A thing that a model is to open: a file by its path, if that says all that the URI does."""
    path = opened_by(uri)
    if path is None or re.fullmatch(_PATH, path) is None:
        return link(uri, name)
    return f"[@{label(name or name_of(path))}]({path})"


def opened_by(uri: str) -> str | None:
    """The absolute path that says all that a URI does; None where there is none."""
    parts = urlsplit(uri)
    return None if parts.query or parts.fragment else file_path(uri)


def context(resource: TextResource) -> str:
    """The text of a resource, for the end of the prompt."""
    return f'<context ref="{target(resource.uri)}">\n{resource.text}\n</context>'


def is_context(said: str) -> bool:
    """Whether a block of text is a resource and nothing else."""
    return _CONTEXT.fullmatch(said) is not None


def in_a_line(said: str) -> str:
    """A prompt as a line of a list shows it: what is sent along by its name, and nothing of what is in it."""
    words = said.partition('<context ref="')[0]
    return _ANY_LINK.sub(_named, words) if "](" in words else words


def _named(link: re.Match[str]) -> str:
    before, behind = link["before"], link.string[link.end() : link.end() + 1]
    return f"{before}{' ' if before else ''}{link['name']}{' ' if behind.isalnum() else ''}"


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
    # The link right before, if it may be that of what comes.
    before: ResourceLink | None = None
    for block in rest:
        match = _LINK.fullmatch(block.text) if isinstance(block, Text) else None
        about, before = before, None
        if match is not None:
            body = texts.pop(match[2], None)
            path = match[2] if match[2].startswith("/") else None
            uri = f"file://{quote(path)}" if path is not None else match[2]
            out.append(ResourceLink(uri, match[1]) if body is None else TextResource(uri, body))
            if body is None and path is None and match[1] == label(name_of(uri)):
                before = ResourceLink(uri, match[1])
        elif isinstance(block, BlobResource | Image) and about is not None:
            out[-1] = block._replace(uri=about.uri)
        else:
            out.append(block)
    return [*out, *(TextResource(uri, body) for uri, body in texts.items())]
