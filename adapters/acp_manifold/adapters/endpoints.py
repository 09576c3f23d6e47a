"""The models that an endpoint says it has: `GET .../models`, asked once and remembered while the agent runs.

Shared by the backends. Needs httpx, which is imported with the first question; whoever has the maker's own endpoint
never asks. No answer is no fault: the CLI's own list counts then.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

import anyio
from anyio import to_thread

from acp_manifold.translators.narrow import as_object, as_objects, as_str

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds an endpoint has to answer, in all."""

RETRY = 60.0
"""Seconds for which an endpoint that gave no answer is not asked again."""

LONGEST = 4 * 1024 * 1024
"""Bytes of an answer that are read; a list of a thousand models is a tenth of that."""


class ModelLists:
    """What endpoints have answered."""

    def __init__(self, clock: Callable[[], float] = anyio.current_time) -> None:
        self._clock = clock
        self._known: dict[bytes, tuple[str, ...]] = {}
        self._failed: dict[bytes, float] = {}
        self._locks: dict[bytes, anyio.Lock] = {}

    async def models(self, url: str, headers: Mapping[str, str]) -> tuple[str, ...]:
        """The ids of the models at `url`, in its order; empty if it gives no list.

        Args:
            url: Of the list itself.
            headers: What the CLI would send, its login among them; secret. Other headers may bring another list.
        """
        key = _key(url, headers)
        async with self._locks.setdefault(key, anyio.Lock()):
            if key in self._known:
                return self._known[key]
            if self._clock() - self._failed.get(key, -RETRY) < RETRY:
                return ()
            found = await _ask(url, headers)
            if found:
                self._known[key] = found
            else:
                self._failed[key] = self._clock()
            return found


LISTS = ModelLists()
"""Those of this process."""


def _key(url: str, headers: Mapping[str, str]) -> bytes:
    """Names an endpoint and a login without keeping the secrets of it."""
    return hashlib.sha256(repr((url, sorted(headers.items()))).encode()).digest()


async def _ask(url: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    http = await to_thread.run_sync(_httpx)
    where = url.partition("?")[0].rpartition("@")[2]
    try:
        with anyio.fail_after(PATIENCE):
            async with (
                http.AsyncClient(timeout=PATIENCE, follow_redirects=False) as client,
                client.stream("GET", url, headers={**headers, "Accept": "application/json"}) as answer,
            ):
                if answer.status_code != http.codes.OK:
                    logger.info("%s has no list of models: status %d", where, answer.status_code)
                    return ()
                body = bytearray()
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > LONGEST:
                        logger.warning("%s has a list of models that is too long", where)
                        return ()
        return _ids(bytes(body))
    except TimeoutError:
        logger.warning("%s gave no list of models within %g s", where, PATIENCE)
    except (http.HTTPError, http.InvalidURL, ValueError) as exc:
        # Not its text, which may repeat a header.
        logger.warning("%s gave no list of models: %s", where, type(exc).__name__)
    return ()


def _httpx() -> ModuleType:
    # In a thread: it takes a tenth of a second, in which no session should stand still.
    return import_module("httpx")


def _ids(body: bytes) -> tuple[str, ...]:
    """The ids in an answer; as OpenAI and Anthropic give them, or as Codex' own endpoint does.

    Raises:
        ValueError: It is no JSON.
    """
    decoded: object = json.loads(body)
    answer = as_object(decoded)
    rows = as_objects(answer.get("data")) or as_objects(answer.get("models"))
    ids = (as_str(row.get("id")) or as_str(row.get("slug")) for row in rows)
    return tuple(dict.fromkeys(name for name in ids if name))
