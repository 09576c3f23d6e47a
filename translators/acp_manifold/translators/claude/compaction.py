"""What Claude Code tells once more behind a compaction."""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, as_list, obj


def kept_messages(boundary: JsonObject) -> frozenset[str]:
    """The frames, by their uuid, that a compaction keeps, from its `compact_boundary`: they follow it once more.

    Claude Code 2.1.332 keeps the last local commands and their output this way.
    """
    kept = as_list(obj(obj(boundary, "compact_metadata"), "preserved_messages").get("all_uuids"))
    return frozenset(uuid for uuid in kept if isinstance(uuid, str))
