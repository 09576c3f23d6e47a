"""Locks by name: what is done under one name is done one after the other, in the order it was asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio


class KeyedLocks:
    """A lock for every name that somebody holds or waits for; none for the others."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[anyio.Lock, int]] = {}

    @asynccontextmanager
    async def holding(self, name: str) -> AsyncGenerator[None]:
        """Wait for the lock of `name`, first come, first served, and hold it."""
        lock, users = self._locks.get(name, (None, 0))
        lock = lock or anyio.Lock()
        self._locks[name] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = lock, users - 1

    def __len__(self) -> int:
        return len(self._locks)
