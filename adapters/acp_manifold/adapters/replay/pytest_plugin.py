"""The pytest plugin: replayed agents for the tests of a client.

    @pytest.mark.recording("sessions/rename.jsonl")
    def test_my_client(replayed):
        replayed.check(Conversation().new().prompt("Hello").end())      # in this process
        subprocess.Popen(replayed.command, env=replayed.environment)    # or for a client that starts its agents

`pytest --update-recordings` makes the goldens anew, and shows what has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from acp_manifold.adapters.replay.conversation import Conversation

MARKER: Final = "recording"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-recordings`."""
    parser.getgroup("acp-manifold").addoption(
        "--update-recordings",
        action="store_true",
        default=False,
        help="write what replays sound like now into their goldens, and show the difference",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", f"{MARKER}(path, version=1): the recording, or the folder of them, that `replayed` plays"
    )


@pytest.fixture
def update_recordings(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are to be written anew."""
    return bool(request.config.getoption("--update-recordings"))


class Replayed:
    """A replayed agent for one test. Made by the fixture `replayed`.

    Attributes:
        recording: What is replayed.
        version: The protocol version that conversations are had in.
        cwd: Where sessions are opened.
        command: What starts the agent as a process, as fast as it goes.
        environment: For that: private folders, no CLI, nothing of the person's.
    """

    def __init__(self, recording: Path, version: int, cwd: Path, golden: Path, update: bool) -> None:
        from acp_manifold.adapters.replay.agent import command

        self.recording = recording
        self.version = version
        self.cwd = cwd
        self.command = command(recording)
        self.environment = {"HOME": str(cwd), "PATH": ""}
        self._golden = golden
        self._update = update

    def check(self, conversation: Conversation, *, golden: bool = True) -> str:
        """Have a conversation with the agent, in this process, and compare all that it says with the golden.

        Args:
            conversation: What is said, and what must come.
            golden: Whether to compare; a golden that is not there yet is written.

        Returns:
            What the agent said, in its normal form.

        Raises:
            Unexpected: Something else came.
            AssertionError: It differs from the golden; the message has the difference.
        """
        import anyio

        from acp_manifold.adapters.replay.golden import compare

        heard = anyio.run(self._have, conversation)
        if golden:
            fresh = not self._golden.is_file()
            difference = compare(self._golden, heard, update=self._update or fresh)
            if difference is not None and self._update:
                print(difference)  # noqa: T201 - what is asked for with --update-recordings
            elif difference is not None and not fresh:
                raise AssertionError(f"{difference}\nIf this is right: pytest --update-recordings")
        return heard

    async def _have(self, conversation: Conversation) -> str:
        from acp_manifold.adapters.replay.agent import connected
        from acp_manifold.adapters.replay.conversation import Talk
        from acp_manifold.adapters.replay.golden import transcript

        async with connected(self.recording, self.version) as client:
            await Talk(client, str(self.cwd)).have(conversation)
            return transcript(client.heard, {str(self.cwd): "<cwd>"})


@pytest.fixture
def replayed(request: pytest.FixtureRequest, tmp_path: Path, update_recordings: bool) -> Iterator[Replayed]:
    """A replayed agent of the recording that the marker `recording` names, from the folder of the test on."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or not marker.args:
        raise pytest.UsageError('the fixture `replayed` needs to know what: @pytest.mark.recording("FILE")')
    here = Path(request.path).parent
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    golden = here / "goldens" / f"{Path(request.path).stem}.{request.node.name}.jsonl"
    yield Replayed(here / marker.args[0], marker.kwargs.get("version", 1), cwd, golden, update_recordings)
