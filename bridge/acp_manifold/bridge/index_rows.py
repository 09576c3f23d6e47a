"""Rows of the session list with all that is known of a session, for clients of the session index."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from acp_manifold.translators.acp import index, v1
from acp_manifold.translators.narrow import JsonObject

from .backend import SessionRow
from .hub import Hub
from .ledger import Key
from .listing import Page


def rendered(hub: Hub, backend: str, row: SessionRow) -> tuple[str, JsonObject, str]:
    """One row of a store.

    Returns:
        Our id of the session, its row, and what tells the row from another one: everything but the time, whose
        change alone is no news.
    """
    ((session_id, shown),) = with_details(hub, Page([(backend, row)], None))
    told = {key: value for key, value in shown.items() if key != "updatedAt"}
    return session_id, shown, json.dumps(told, sort_keys=True)


def with_details(hub: Hub, page: Page) -> list[tuple[str, JsonObject]]:
    """The rows of a page, each with our id of its session."""
    return [
        (
            session_id,
            index.with_details(
                v1.session_row(
                    session_id,
                    row.cwd,
                    row.updated_at,
                    title,
                    row.additional_directories,
                    name,
                    archived=hub.is_archived(name, row),
                ),
                _details(hub, name, row),
            ),
        )
        for session_id, name, row, title in hub.describe(page)
    ]


def _details(hub: Hub, backend: str, row: SessionRow) -> index.Details:
    session = hub.by_key(Key(backend, row.id))
    details = index.Details(
        hub.is_archived(backend, row),
        model=row.model,
        forked_from=None if row.forked_from is None else hub.shown_id(Key(backend, row.forked_from)),
        cost_usd=row.cost_usd,
    )
    if session is None:
        return details
    return details._replace(
        state=session.state,
        last_prompt_at=_moment(session.last_prompt_at),
        last_turn_ended_at=_moment(session.last_turn_ended_at),
        # A store has it once the CLI has ended.
        cost_usd=row.cost_usd if session.cost_usd is None else session.cost_usd,
    )


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
