"""What the host sends to Claude Code: user messages, control requests and the answers to its own."""

from __future__ import annotations

from acp_manifold.translators.attached import context, link
from acp_manifold.translators.claude.mentions import mention
from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.narrow import JsonObject, text
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

REFUSAL_DIALOG = "refusal_fallback_prompt"
"""The dialog of Claude Code 2.1.332 that is shown here; it asks for none that no host has said to show."""


def user_message(prompt: Prompt, uuid: str, priority: str | None = None, *, is_command: bool = False) -> JsonObject:
    """A prompt as a user message.

    Args:
        prompt: What the person sent.
        uuid: Names it in the frames that follow.
        priority: For one in mid-turn.
        is_command: Whether it begins with a command that there is. Claude Code 2.1.332 looks for one at the
            beginning of the last block alone, so all words of it stand there; in any other prompt none is found.
    """
    blocks = [block for content in prompt for block in _blocks(content)]
    contexts = [_said(context(content)) for content in prompt if isinstance(content, TextResource)]
    blocks = _with_command_last([*contexts, *blocks], len(contexts)) if is_command else [*blocks, *contexts]
    if not is_command and _has_command_behind_words(blocks):
        blocks[-1] = _said(f" {blocks[-1]['text']}")
    message: JsonObject = {
        "type": "user",
        "session_id": "",
        "message": {"role": "user", "content": blocks},
        "parent_tool_use_id": None,
        "uuid": uuid,
    }
    if priority is not None:
        message["priority"] = priority
    return message


def greeting(prompt: SystemPrompt | None) -> JsonObject:
    """The `initialize` request: the dialogs that are shown here, the instructions that a client gives the session."""
    request: JsonObject = {"subtype": "initialize", "supportedDialogKinds": [REFUSAL_DIALOG]}
    if prompt is not None:
        # Without `snapshot` a resumed session would keep the instructions it first had.
        request["systemPromptSnapshot"] = False
        if prompt.mode == "override":
            request["systemPrompt"] = [prompt.text]
        else:
            request["appendSystemPrompt"] = prompt.text
    return request


def control_request(request_id: str, request: JsonObject) -> JsonObject:
    """A request of ours."""
    return {"type": "control_request", "request_id": request_id, "request": request}


def control_answer(request_id: str, response: JsonObject) -> JsonObject:
    """The answer to a request of the CLI's."""
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    }


def control_refusal(request_id: str, error: str) -> JsonObject:
    """The answer to a request of the CLI's that nobody here serves."""
    return {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}


def _blocks(content: Content) -> list[JsonObject]:
    match content:
        case Text():
            return [_said(content.text)]
        case Image():
            return _picture(content)
        case ResourceLink():
            return [_said(mention(content.uri, content.name))]
        case TextResource():
            return [_said(link(content.uri))]
        case BlobResource():
            return [_said(link(content.uri)), _attached("document", content.mime_type or "", content.data)]
        case Audio():
            return []


def _with_command_last(blocks: list[JsonObject], first: int) -> list[JsonObject]:
    """Blocks whose texts from the one at `first` on are one, which is the last."""
    words = ""
    for block in blocks[first:]:
        said = text(block, "text")
        apart = said and words and not words[-1].isspace() and not said[0].isspace()
        words += f" {said}" if apart else said
    return [*blocks[:first], *(block for block in blocks[first:] if block["type"] != "text"), _said(words)]


def _has_command_behind_words(blocks: list[JsonObject]) -> bool:
    *before, last = blocks or [{}]
    said = text(last, "text")
    if not said.startswith("/") or all(block["type"] != "text" for block in before):
        return False
    from acp_manifold.translators.slash import slash_of

    return slash_of((Text(said),)) is not None


def _said(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def _attached(kind: str, mime_type: str, data: str) -> JsonObject:
    return {"type": kind, "source": {"type": "base64", "media_type": mime_type, "data": data}}


def _picture(image: Image) -> list[JsonObject]:
    """A picture: its bytes, the address of a remote one, or a mention of one on disk, which Claude Code then reads."""
    uri = image.uri or ""
    if image.data:
        return [*([_said(link(uri))] if uri else []), _attached("image", image.mime_type, image.data)]
    if uri.startswith(("https://", "http://")):
        return [{"type": "image", "source": {"type": "url", "url": uri}}]
    return [_said(mention(uri, uri))]
