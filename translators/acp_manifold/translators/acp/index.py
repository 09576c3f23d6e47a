"""The vendors' session index: list options, rows with details, changes (claude-agent-acp 0.101, codex-acp 2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_object, is_list, obj
from acp_manifold.translators.values import NamedTuple

from .requests import BadParams, absolute_path, required_text

DEFAULT_LIMIT = 50
MAX_LIMIT = 100

Archived: TypeAlias = Literal["exclude", "include", "only"]

_ARCHIVED: dict[str, Archived] = {"unarchived": "exclude", "archived": "only", "all": "include"}


class ListOptions(NamedTuple):
    """What `_meta.jetbrains.air.list` of a `session/list` asks for."""

    limit: int = DEFAULT_LIMIT
    """Rows of a page."""
    archived: Archived = "exclude"
    worktrees: bool = False
    """Whether the sessions of the same directory in linked worktrees belong to it."""


class Details(NamedTuple):
    """What a row tells beyond the protocol's own fields; None is not known."""

    archived: bool = False
    state: str | None = None
    last_prompt_at: str | None = None
    """ISO 8601 with a zone, as all times."""
    last_turn_ended_at: str | None = None
    model: str | None = None
    forked_from: str | None = None
    cost_usd: float | None = None


def list_options(params: JsonObject) -> ListOptions:
    """The options of a `session/list`.

    Raises:
        BadParams: One has a value that it can't have.
    """
    field = "_meta.jetbrains.air.list"
    said = obj(obj(obj(obj(params, "_meta"), "jetbrains"), "air"), "list")
    limit, archived, worktrees = said.get("limit"), said.get("archived"), said.get("includeWorktrees")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise BadParams(f"{field}.limit", "must be an integer of at least 1")
    if archived is not None and (not isinstance(archived, str) or archived not in _ARCHIVED):
        raise BadParams(f"{field}.archived", f"must be one of {', '.join(_ARCHIVED)}")
    if worktrees is not None and not isinstance(worktrees, bool):
        raise BadParams(f"{field}.includeWorktrees", "must be true or false")
    return ListOptions(
        DEFAULT_LIMIT if limit is None else min(limit, MAX_LIMIT),
        _ARCHIVED[archived or "unarchived"],
        bool(worktrees),
    )


def wanted_ids(params: JsonObject) -> tuple[str, ...]:
    """The ids of a `_session/batch_get`, which has no other param.

    Raises:
        BadParams: They are no array of distinct ids, or there is something else.
    """
    ids = params.get("sessionIds")
    if [key for key in params if key not in ("sessionIds", "_meta")]:
        raise BadParams("params", "sessionIds is all there is")
    found = tuple(item for item in ids if isinstance(item, str) and item.strip()) if is_list(ids) else ()
    if not is_list(ids) or len(found) != len(ids) or len(set(found)) != len(found):
        raise BadParams("sessionIds", "must be an array of distinct ids, none of them blank")
    return found


def followed_directory(params: JsonObject) -> str:
    """The directory of a `_session/list/subscribe`.

    Raises:
        BadParams: It is no absolute path.
    """
    return absolute_path("cwd", required_text(params, "cwd"))


def with_details(row: JsonObject, details: Details) -> JsonObject:
    """A row of `session/list` with what the index adds."""
    fields: JsonObject = {
        "version": 1,
        "archived": details.archived,
        "lastPromptAt": details.last_prompt_at,
        "state": details.state,
        "lastTurnEndedAt": details.last_turn_ended_at,
        "model": details.model,
        "forkedFrom": details.forked_from,
        "cost": None if details.cost_usd is None else {"amount": details.cost_usd, "currency": "USD"},
    }
    air = {key: value for key, value in fields.items() if value is not None}
    meta = as_object(row.get("_meta"))
    return {**row, "_meta": {**meta, "jetbrains": {"air": air}}}


def changes_params(subscription: str, rows: Sequence[JsonObject], gone: Sequence[str]) -> JsonObject:
    """Params of a `_session/list/changes`."""
    return {"subscriptionId": subscription, "sessions": list(rows), "removed": list(gone)}
