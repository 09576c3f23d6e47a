"""A prompt as the `input` of `turn/start`, and what of it Codex takes."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Content, Image, Prompt, Text

INPUT_LIMIT = 1_048_576
"""Characters of text in one input block; codex-cli 0.163.0 refuses more with `input_too_large`."""


def to_input(prompt: Prompt) -> list[JsonObject]:
    """The blocks of a prompt as Codex takes them, in order."""
    return [_block(content) for content in prompt]


def _block(content: Content) -> JsonObject:
    if isinstance(content, Text):
        return {"type": "text", "text": content.text, "text_elements": []}
    if isinstance(content, Image):
        return {"type": "image", "url": f"data:{content.mime_type};base64,{content.data}"}
    path = file_path(content.uri)
    said = f"[@{content.name}]({path or content.uri})"
    return {"type": "text", "text": said, "text_elements": []}


def file_path(uri: str) -> str | None:
    """The absolute path a `file:` URI names; None for other URIs."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path) or None


def text_size(prompt: Prompt) -> int:
    """Characters of text, as Codex counts them for its limit."""
    return sum(len(content.text) for content in prompt if isinstance(content, Text))
