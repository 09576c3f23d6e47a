"""A client's prompt: content blocks of ACP v1 to the canonical `Prompt`."""

from __future__ import annotations

from collections.abc import Callable

from acp_manifold.translators.narrow import JsonObject, as_str, is_list, is_object
from acp_manifold.translators.updates import Content, Prompt, ResourceLink, Text

from .requests import BadParams, required_text


def prompt(params: JsonObject) -> Prompt:
    """The content of a `session/prompt`.

    Raises:
        BadParams: `prompt` is missing, empty, holds nothing to say, or holds a block of a
            kind that is not advertised.
    """
    blocks = params.get("prompt")
    if not is_list(blocks):
        raise BadParams("prompt", "is required and must be an array of content blocks")
    content = tuple(_block(block, f"prompt[{index}].") for index, block in enumerate(blocks))
    if not any(_says_something(item) for item in content):
        raise BadParams("prompt", "is empty: send at least one text that is not blank, a picture or a resource")
    return content


def typed_text(content: Prompt) -> str:
    """What the person typed, without links and attachments, for naming a session."""
    return "\n".join(item.text for item in content if isinstance(item, Text)).strip()


def rename_command(content: Prompt) -> str | None:
    """The title, perhaps empty, in a prompt that is nothing but `/rename TITLE`; None for any other prompt."""
    texts = [item.text for item in content if isinstance(item, Text)]
    if len(texts) != len(content):
        return None
    command, *title = " ".join(texts).split(maxsplit=1)
    return "".join(title) if command == "/rename" else None


def _says_something(item: Content) -> bool:
    return bool(item.text.strip()) if isinstance(item, Text) else True


def _block(value: object, path: str) -> Content:
    if not is_object(value):
        raise BadParams(path.rstrip("."), "must be an object")
    kind = required_text(value, "type", path)
    read = _BLOCKS.get(kind) or _attachment(kind)
    if read is None:
        raise BadParams(path + "type", f"{kind[:40]!r} is not taken: this agent takes {_TAKEN}")
    return read(value, path)


def _attachment(kind: str) -> Callable[[JsonObject, str], Content] | None:
    # Imported with the first one: few prompts have any.
    from .attachments import BLOCKS

    return BLOCKS.get(kind)


def _text(block: JsonObject, path: str) -> Content:
    return Text(required_text(block, "text", path))


def _resource_link(block: JsonObject, path: str) -> Content:
    return ResourceLink(
        required_text(block, "uri", path),
        required_text(block, "name", path),
        as_str(block.get("mimeType")),
        as_str(block.get("title")),
        as_str(block.get("description")),
    )


_BLOCKS: dict[str, Callable[[JsonObject, str], Content]] = {"text": _text, "resource_link": _resource_link}
_TAKEN = "text, resource_link, image and resource"
