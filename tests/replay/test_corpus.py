"""Every recording of the corpus, replayed through adapters and bridge in both versions of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.adapters.codex import options as codex_options
from acp_manifold.adapters.replay.agent import connected
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.adapters.replay.golden import compare, settings, transcript
from acp_manifold.bridge.recording.reader import read
from acp_manifold.translators.narrow import JsonObject, as_list, obj

from .corpus import HEARD, Case, cases, heard_then

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nothing_is_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_options, "MODELS_DELAY", 0.0)


async def heard(case: Case, cwd: Path, version: int) -> str:
    """What the client of a replay hears, in its normal form, and what it knows in the end of what can be set."""
    then = settings(heard_then(read(case.path)))
    async with connected(case.path, version) as client:
        await Talk(client, str(cwd), case.backend).have(Conversation.of(*case.scenario.steps))

        def known() -> dict[str, JsonObject] | None:
            now = settings(client.heard)
            return now if all(is_as_then(then[session], now.get(session, {})) for session in then) else None

        now = await client.until(known, "knowledge of all that can be set", limit=10.0)
        told = [
            {"session": session, **{key: now[session][key] for key in of_it if key in now[session]}}
            for session, of_it in then.items()
        ]
        return transcript([*client.heard, *told], {str(cwd): "<cwd>"})


def is_as_then(then: JsonObject, now: JsonObject) -> bool:
    """Whether the same can be set; of commands a recording has the first few."""
    commands = as_list(then.get("commands"))
    same = sorted(obj(then, "options")) == sorted(obj(now, "options"))
    return same and as_list(now.get("commands"))[: len(commands)] == commands


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
async def test_a_replay_is_heard_as_it_was_and_the_same_each_time(
    case: Case, version: int, tmp_path: Path, update_recordings: bool
) -> None:
    first = await heard(case, tmp_path, version)
    assert await heard(case, tmp_path, version) == first
    path = HEARD / case.backend / case.path.parent.name / f"{case.scenario.name}.v{version}.jsonl"
    difference = compare(path, first, update=update_recordings)
    assert difference is None or update_recordings, f"{difference}\nIf this is right: --update-recordings"
