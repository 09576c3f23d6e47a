"""What the host sends to Claude Code: user messages, control requests and the answers to its own."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Content, Image, Prompt, ResourceLink, Text


def user_message(prompt: Prompt, uuid: str, priority: str | None = None) -> JsonObject:
    """A prompt as a user message; `uuid` names it in the frames that follow, `priority` is for one in mid-turn."""
    blocks = [_block(content) for content in prompt]
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


def _block(content: Content) -> JsonObject:
    match content:
        case Text():
            return {"type": "text", "text": content.text}
        case Image():
            source = {"type": "base64", "media_type": content.mime_type, "data": content.data}
            return {"type": "image", "source": source}
        case ResourceLink():
            return {"type": "text", "text": _mention(content)}


def _mention(link: ResourceLink) -> str:
    """A file as a person mentions it in Claude Code, which then reads it; anything else as a Markdown link."""
    parts = urlsplit(link.uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not path or '"' in path or "\n" in path:
        return f"[{link.name}]({link.uri})"
    return f'@"{path}"' if any(char.isspace() for char in path) else f"@{path}"
