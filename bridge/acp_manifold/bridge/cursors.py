"""The cursors of the session list: where a page ends, for one filter, in a form that can be told from anything else."""

from __future__ import annotations

import base64
import binascii
import json
import zlib

from acp_manifold.translators.acp.requests import ListFilter
from acp_manifold.translators.narrow import as_list, as_str

from .errors import InvalidParams
from .listing import Place


def encode_cursor(place: Place, wanted: ListFilter) -> str:
    """A cursor that holds for one filter; its checksum tells ours from anything else."""
    body = json.dumps([place.updated_at, place.id, *wanted]).encode()
    return base64.urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode_cursor(cursor: str, wanted: ListFilter) -> Place:
    """The place a cursor of ours names.

    Raises:
        InvalidParams: It is not ours, or belongs to a list with another filter.
    """
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if zlib.crc32(raw[4:]).to_bytes(4, "big") != raw[:4] or len(raw) < 5:
            raise ValueError("checksum")
        fields = as_list(json.loads(raw[4:]))
    except (ValueError, binascii.Error):
        raise InvalidParams("cursor: was not given out by this agent", {"field": "cursor"}) from None
    updated_at, row_id = (as_str(field) for field in fields[:2]) if len(fields) > 2 else (None, None)
    if updated_at is None or row_id is None:
        raise InvalidParams("cursor: was not given out by this agent", {"field": "cursor"})
    if fields[2:] != [*wanted]:
        raise InvalidParams("cursor: belongs to a list with another filter", {"field": "cursor"})
    return Place(updated_at, row_id)
