"""Pictures and resources in a prompt: what is taken, and what is refused by the name of its field."""

from __future__ import annotations

from base64 import b64encode

import pytest

from acp_manifold.translators.acp.attachments import ATTACHED_LIMIT
from acp_manifold.translators.acp.prompts import prompt
from acp_manifold.translators.acp.requests import BadParams
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import BlobResource, Content, Image, ResourceLink, TextResource

PNG = b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()
HELLO = b64encode("grüß dich".encode()).decode()


def read(block: JsonObject) -> Content:
    (content,) = prompt({"prompt": [block]})
    return content


def resource(**fields: object) -> JsonObject:
    return {"type": "resource", "resource": fields}


@pytest.mark.parametrize(
    ("block", "content"),
    [
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, Image(PNG, "image/png")),
        (
            {"type": "image", "data": PNG[:8] + "\n" + PNG[8:], "mimeType": "image/png", "uri": "file:///a.png"},
            Image(PNG, "image/png", "file:///a.png"),
        ),
        ({"type": "image", "data": "", "mimeType": "image/png", "uri": "x:a"}, Image("", "image/png", "x:a")),
        (resource(uri="file:///a", text="", mimeType="text/plain"), TextResource("file:///a", "", "text/plain")),
        (
            resource(uri="x:a", blob=HELLO, mimeType="application/ld+json"),
            TextResource("x:a", "grüß dich", "application/ld+json"),
        ),
        (resource(uri="x:a", blob=HELLO, mimeType="application/pdf"), BlobResource("x:a", HELLO, "application/pdf")),
        (resource(uri="x:a", blob=PNG, mimeType="image/png"), Image(PNG, "image/png", "x:a")),
        (
            resource(uri="file:///d/a%20b.zip", blob=HELLO, mimeType="application/zip"),
            ResourceLink("file:///d/a%20b.zip", "a b.zip", "application/zip"),
        ),
    ],
)
def test_what_a_cli_can_be_given_is_taken(block: JsonObject, content: Content) -> None:
    assert read(block) == content


@pytest.mark.parametrize(
    ("block", "field", "why"),
    [
        ({"type": "image", "data": PNG}, "mimeType", "required"),
        ({"type": "image", "data": PNG, "mimeType": "image/tiff"}, "mimeType", "'image/tiff' is not taken"),
        ({"type": "image", "data": "no base64!", "mimeType": "image/png"}, "data", "is no base64"),
        ({"type": "image", "data": "ä", "mimeType": "image/png"}, "data", "is no base64"),
        ({"type": "image", "data": HELLO, "mimeType": "image/png"}, "data", "no PNG, JPEG, GIF or WebP"),
        ({"type": "image", "data": "", "mimeType": "image/png"}, "data", "empty"),
        ({"type": "image", "mimeType": "image/png"}, "data", "required"),
        ({"type": "image", "data": "A" * (ATTACHED_LIMIT + 4), "mimeType": "image/png"}, "data", "20 MiB"),
        ({"type": "audio", "data": PNG, "mimeType": "audio/wav"}, "type", "'audio' is not taken"),
        ({"type": "video"}, "type", "'video' is not taken"),
        ({"type": "resource"}, "resource", "required"),
        (resource(text="x"), "resource.uri", "required"),
        (resource(uri="x:a"), "resource.blob", "required"),
        (resource(uri="x:a", blob=PNG, mimeType="text/plain"), "resource.blob", "no UTF-8"),
        (resource(uri="https://h/a.zip", blob=PNG, mimeType="application/zip"), "resource.mimeType", "not taken"),
    ],
)
def test_what_no_cli_takes_is_refused_by_the_name_of_its_field(block: JsonObject, field: str, why: str) -> None:
    with pytest.raises(BadParams, match=why) as refused:
        read(block)
    assert refused.value.field == f"prompt[0].{field}"
