"""Every recording of the corpus, replayed through adapters and bridge in both versions of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.adapters.replay.agent import connected
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.adapters.replay.golden import compare, transcript

from .corpus import HEARD, Case, cases

pytestmark = pytest.mark.anyio


async def heard(case: Case, cwd: Path, version: int) -> str:
    """What the client of a replay hears, in its normal form."""
    async with connected(case.path, version) as client:
        await Talk(client, str(cwd), case.backend).have(Conversation.of(*case.scenario.steps))
        return transcript(client.heard, {str(cwd): "<cwd>"})


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
