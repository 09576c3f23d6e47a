"""Pictures of a prompt as files that the interactive program reads when they are mentioned.

Claude Code 2.1.332 takes a file that a typed prompt mentions (`@/path/picture.png`) with the prompt, without a
question, wherever it is, at any place of the prompt. So each lies in a folder that only the person can look into,
until the turn is over. Of a PDF that is mentioned the model gets no more than that there is one, be it of 1 page or 25.
"""

from __future__ import annotations

import base64
import binascii
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from acp_manifold.bridge.errors import InvalidParams
from acp_manifold.translators.updates import Content, Image, Prompt, ResourceLink

_ENDINGS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}


@contextmanager
def in_files(prompt: Prompt) -> Generator[Prompt]:
    """The prompt with links to files in place of pictures; the files are there while the context is open.

    Raises:
        InvalidParams: There is a picture in it that the program does not take.
        OSError: A file can't be written.
    """
    if not any(isinstance(content, Image) for content in prompt):
        yield prompt
        return
    folder = Path(tempfile.mkdtemp(prefix="acp-manifold-"))
    try:
        yield tuple(_in_file(content, folder / str(number)) for number, content in enumerate(prompt, 1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_file(content: Content, place: Path) -> Content:
    if not isinstance(content, Image):
        return content
    uri = content.uri or ""
    if not content.data and not uri.startswith(("https://", "http://")):
        return ResourceLink(uri, uri)
    ending = _ENDINGS.get(content.mime_type.lower())
    try:
        data = base64.b64decode(content.data, validate=True)
    except binascii.Error as exc:
        raise InvalidParams(f"prompt: a picture is no base64: {exc}") from exc
    if ending is None or not data:
        raise InvalidParams(f"prompt: the interactive program takes pictures as bytes of {', '.join(_ENDINGS)}")
    path = place.with_suffix(f".{ending}")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return ResourceLink(path.as_uri(), path.name)
