"""Pictures and resources in a client's prompt: checked here, so that what is wrong is said before anything is sent.

A CLI that can't use a picture tells the model so and nobody else (Claude Code 2.1.332, codex-cli 0.163.0),
and one that is too large for the model's API spoils every later request of the conversation.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable

from acp_manifold.translators.attached import file_path, name_of
from acp_manifold.translators.narrow import JsonObject, as_str, is_object
from acp_manifold.translators.updates import BlobResource, Content, Image, ResourceLink, TextResource

from .requests import BadParams, required_text

ATTACHED_LIMIT = 20 * 1024 * 1024
"""The most base64 characters of one picture or document. Claude Code makes pictures smaller itself, Codex does not."""

PDF = "application/pdf"

_IMAGES = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}
_TEXTS = {"json", "xml", "yaml", "toml", "javascript", "typescript", "x-sh", "sql", "x-yaml", "x-python"}


def image(block: JsonObject, path: str) -> Content:
    """A picture: its bytes, or where they are.

    Raises:
        BadParams: It is neither, too large, no base64, or no picture that the CLIs' models take.
    """
    mime_type, uri = required_text(block, "mimeType", path), as_str(block.get("uri"))
    data = as_str(block.get("data")) or ""
    if data or not uri:
        return Image(_picture(required_text(block, "data", path), mime_type, path, "data"), mime_type, uri)
    return Image("", mime_type, uri)


def resource(block: JsonObject, path: str) -> Content:
    """An embedded resource: text as text, a picture as one, a PDF as it is.

    Raises:
        BadParams: It has neither text nor bytes, or bytes that no CLI takes and that are in no file.
    """
    inner = block.get("resource")
    path += "resource."
    if not is_object(inner):
        raise BadParams(path.rstrip("."), "is required and must be an object")
    uri, mime_type = required_text(inner, "uri", path), as_str(inner.get("mimeType"))
    if isinstance(said := inner.get("text"), str):
        return TextResource(uri, said, mime_type)
    return _blob(uri, mime_type or "", required_text(inner, "blob", path), path)


def _blob(uri: str, mime_type: str, blob: str, path: str) -> Content:
    kind = mime_type.partition(";")[0].strip().lower()
    if kind in _IMAGES:
        return Image(_picture(blob, kind, path, "blob"), kind, uri)
    if kind == PDF:
        _bytes(blob, path, "blob")
        return BlobResource(uri, "".join(blob.split()), PDF)
    if kind.startswith("text/") or kind.rpartition("/")[2].rpartition("+")[2] in _TEXTS:
        try:
            return TextResource(uri, _bytes(blob, path, "blob").decode("utf-8"), mime_type)
        except UnicodeDecodeError:
            raise BadParams(path + "blob", f"is no UTF-8, though its type is {kind}") from None
    if file_path(uri) is not None:
        # It can be read where it is.
        return ResourceLink(uri, name_of(uri), mime_type or None)
    raise BadParams(
        path + "mimeType",
        f"{kind[:60]!r} is not taken: embed text, a picture or a PDF, or link to a file on disk",
    )


def no_audio(block: JsonObject, path: str) -> Content:
    """Sound: no model of the CLIs takes it (codex-cli 0.163.0 leaves it out and tells its model so).

    Raises:
        BadParams: Always.
    """
    raise BadParams(path + "type", "'audio' is not taken: neither Claude Code nor Codex hands sound to its model")


def _picture(data: str, mime_type: str, path: str, field: str) -> str:
    if mime_type.lower() not in _IMAGES:
        raise BadParams(path + "mimeType", f"{mime_type[:60]!r} is not taken: send PNG, JPEG, GIF or WebP")
    head = _bytes(data, path, field)[:12]
    known = head.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8"))
    if not known and not (head.startswith(b"RIFF") and head[8:] == b"WEBP"):
        raise BadParams(path + field, "holds no PNG, JPEG, GIF or WebP picture")
    return "".join(data.split())


def _bytes(data: str, path: str, field: str) -> bytes:
    if len(data) > ATTACHED_LIMIT:
        size, most = (count // (1024 * 1024) for count in (len(data), ATTACHED_LIMIT))
        raise BadParams(path + field, f"is too large: about {size} MiB of base64; {most} MiB are taken at most")
    try:
        decoded = b64decode("".join(data.split()), validate=True)
    except (NotBase64, ValueError):
        raise BadParams(path + field, "is no base64") from None
    if not decoded:
        raise BadParams(path + field, "is empty")
    return decoded


BLOCKS: dict[str, Callable[[JsonObject, str], Content]] = {"image": image, "resource": resource, "audio": no_audio}
"""Type of a content block -> what reads it, given the block and its path."""
