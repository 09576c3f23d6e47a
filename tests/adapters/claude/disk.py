"""A store on disk, of a test's making, and the records that it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude.store import Store
from acp_manifold.adapters.claude.tail import TitleTail
from acp_manifold.bridge.backend import ListQuery, SessionRow
from acp_manifold.translators.claude.records import Title

Record: TypeAlias = dict[str, object]

A = "aaaaaaaa-0000-4000-8000-000000000000"
B = "bbbbbbbb-0000-4000-8000-000000000000"
C = "cccccccc-0000-4000-8000-000000000000"


def said(words: str, hour: int = 10, cwd: str = "/w", **more: object) -> Record:
    return {
        "type": "user",
        "uuid": f"{words}-{hour}",
        "cwd": cwd,
        "timestamp": f"2026-01-01T{hour}:00:00.000Z",
        "message": {"role": "user", "content": words},
        **more,
    }


def custom(title: str, session_id: str = A) -> Record:
    return {"type": "custom-title", "customTitle": title, "sessionId": session_id}


def filler(size: int) -> list[Record]:
    return [{"type": "attachment", "attachment": {"text": "x" * 900}} for _ in range(size // 1000)]


class Disk:
    """A config directory with transcripts of a test's making."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "config"
        self.index = folder / ".local" / "state" / "acp-manifold" / "claude-index.sqlite3"
        self._env = {"CLAUDE_CONFIG_DIR": str(self.config), "HOME": str(folder)}
        self.backend = ClaudeBackend(self._env)

    def restart(self) -> None:
        """Another process of ours, as far as that matters."""
        self.backend = ClaudeBackend(self._env)

    def put(self, session_id: str, *records: Record | bytes, project: str = "-w") -> Path:
        path = self.config / "projects" / project / f"{session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [entry if isinstance(entry, bytes) else json.dumps(entry).encode() + b"\n" for entry in records]
        path.write_bytes(b"".join(lines))
        return path

    async def rows(self, limit: int = 50, cwd: str | None = None) -> list[SessionRow]:
        return await self.backend.list(ListQuery(limit, cwd))

    def heard(self, session_id: str, cwd: str = "/w") -> list[Title]:
        """The titles of a look at the transcript by one who follows it."""
        titles: list[Title] = []
        TitleTail(Store(self.config).expected_path(session_id, cwd), titles.append).changed()
        return titles

    async def title(self) -> tuple[str | None, str | None]:
        """Title and origin of the only row."""
        (row,) = await self.rows()
        assert await self.backend.find(row.id) == row
        return row.title, row.title_origin
