"""A prompt as the `input` of `turn/start`, and what of it Codex takes."""

from __future__ import annotations

from acp_manifold.translators.attached import context, file_path, link, link_to
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    Audio,
    BlobResource,
    Content,
    Image,
    Prompt,
    ResourceLink,
    Text,
    TextResource,
)

INPUT_LIMIT = 1_048_576
"""Characters of text in one input block; codex-cli 0.163.0 refuses more with `input_too_large`."""


def to_input(prompt: Prompt) -> list[JsonObject]:
    """The blocks of a prompt as Codex takes them, in order.

    codex-cli 0.163.0 takes `mention` input and tells the model nothing of it, so files go as links.
    """
    blocks = [block for content in prompt for block in _blocks(content)]
    return blocks + [_said(context(content)) for content in prompt if isinstance(content, TextResource)]


def refused(prompt: Prompt) -> tuple[int, str] | None:
    """The first block that Codex can't be given, by its place from 0, and why; None if all can."""
    for place, content in enumerate(prompt):
        if isinstance(content, BlobResource) and file_path(content.uri) is None:
            return place, f"Codex takes no {content.mime_type or 'bytes'}: link to a file on disk, or send its text"
    return None


def _blocks(content: Content) -> list[JsonObject]:
    match content:
        case Text():
            return [_said(content.text)]
        case Image():
            return _picture(content)
        case ResourceLink():
            return [_said(link_to(content.uri, content.name))]
        case TextResource():
            return [_said(link(content.uri))]
        case BlobResource():
            return [_said(link_to(content.uri))]
        case Audio():
            return []


def _said(words: str) -> JsonObject:
    return {"type": "text", "text": words, "text_elements": []}


def _picture(image: Image) -> list[JsonObject]:
    """A picture: its bytes, or one on disk; of a remote one Codex takes no more than its address."""
    uri = image.uri or ""
    if image.data:
        url = f"data:{image.mime_type};base64,{image.data}"
        return [*([_said(link(uri))] if uri else []), {"type": "image", "url": url}]
    path = file_path(uri)
    return [{"type": "localImage", "path": path}] if path is not None else [_said(link(uri))]


def text_size(prompt: Prompt) -> int:
    """Characters of text, as Codex counts them for its limit."""
    return sum(len(content.text) for content in prompt if isinstance(content, Text | TextResource))
