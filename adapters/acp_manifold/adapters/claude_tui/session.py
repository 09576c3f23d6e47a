"""A session that the interactive program serves: its start, its turns, its questions, its end.

What the program does is known from three places, each read when it changes: the transcript (what was
said and done, and a turn's end), the registry (whether it is at work), its hooks (text as it streams, and
questions). The screen only says whether something can be typed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude_tui.adding import Adding
from acp_manifold.adapters.claude_tui.asking import Asking
from acp_manifold.adapters.claude_tui.attachments import in_files
from acp_manifold.adapters.claude_tui.commands import CLEAR, OWN_NAMES
from acp_manifold.adapters.claude_tui.keyboard import ENTER_AGAIN, ENTERS, Keyboard
from acp_manifold.adapters.claude_tui.options import TuiOptions
from acp_manifold.adapters.claude_tui.paste import argument as safe_argument
from acp_manifold.adapters.claude_tui.paste import prompt as safe_prompt
from acp_manifold.adapters.claude_tui.paste import safe
from acp_manifold.adapters.claude_tui.pty import Terminal
from acp_manifold.adapters.claude_tui.readiness import RESTING, Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.adapters.claude_tui.shells import Shells
from acp_manifold.adapters.claude_tui.title import TypedTitle
from acp_manifold.adapters.claude_tui.transcript import Follower
from acp_manifold.adapters.claude_tui.turn import Turn
from acp_manifold.bridge.backend import SessionEvents, SessionSpec
from acp_manifold.bridge.errors import (
    BackendFault,
    BackendGone,
    BridgeError,
    InvalidParams,
    LoginNeeded,
)
from acp_manifold.translators.claude.endings import Failure
from acp_manifold.translators.claude.options import Menu
from acp_manifold.translators.claude.records import title_of, unmarked
from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.claude.tools import AGENT_TOOLS
from acp_manifold.translators.claude.typed import letters, typed_parts
from acp_manifold.translators.narrow import JsonObject, text
from acp_manifold.translators.slash import slash_of
from acp_manifold.translators.updates import (
    BackgroundTask,
    Commands,
    ConfigOption,
    Notice,
    Prompt,
    TaskOutput,
    Text,
    TurnEnd,
    Update,
)

if TYPE_CHECKING:
    from acp_manifold.adapters.claude_tui.agents import Agents

logger = logging.getLogger(__name__)

ACCEPT_LIMIT: Final = 15.0
"""Seconds in which a prompt that has left the input box is taken; 0.05 are usual, several on a busy machine."""

LAST_ROWS: Final = 0.5
"""Seconds after the end of work for the last records; 0.11 are usual (2.1.332)."""

MISSING_ROWS: Final = 3.0
"""The same while the last record is not one that a turn ends with."""

THOUGHT_LAG: Final = 0.11
"""Seconds by which the record of a thought may come behind the first line of the text after it (2.1.332)."""

ESCAPE_AGAIN: Final = 2.0
"""Seconds to wait for the end of work after Escape, before it is pressed again."""

ESCAPES: Final = 5

STATUS_LIMIT: Final = 0.5
"""Seconds for what a new program tells its status line; it comes before the program is ready, as a rule (2.1.332)."""

DIALOG_LIMIT: Final = 5.0
"""Seconds between two looks whether a dialog is open that nobody was asked about."""

CANCEL: Final = "Cancel the turn to go on. If `disableAllHooks` is in your settings of Claude Code, take it out."


class TuiSession:
    """One program, one conversation. Made by `serve`, which owns the program."""

    def __init__(
        self,
        session_id: str,
        terminal: Terminal,
        screen: Screen,
        standing: Standing,
        path: Path,
        tasks: TaskGroup,
        spec: SessionSpec,
        events: SessionEvents,
        carried: Carried,
        moved: Callable[[TuiSession, str], Path],
        watch_folder: Callable[[Path, Callable[[Path | None], None]], None],
        *,
        mode: str,
        menu: Menu,
        commands: Commands,
        resumed: bool,
    ) -> None:
        """
        Args:
            session_id: The program's own id.
            terminal: Where it runs.
            screen: What is painted there.
            standing: Where it stands.
            path: Its transcript.
            tasks: What lives as long as the program.
            spec: Where and with what.
            events: Whom to tell.
            carried: What the session keeps from one program to the next.
            moved: Called when the conversation goes on under another id; gives its transcript.
            watch_folder: Has a function called when a file of a folder was written; the folder need not be there yet.
            mode: The permission mode that the program was started in.
            menu: The models, as far as they are known.
            commands: The slash commands that can be typed.
            resumed: Whether it was in the store before.
        """
        self._id = session_id
        self._moved = moved
        self._watch_folder = watch_folder
        self._path = path
        self._agents: Agents | None = None
        """Made with the first sub-agent."""
        self._terminal = terminal
        self._screen = screen
        self._standing = standing
        self._tasks = tasks
        self._events = events
        self._talk = TerminalConversation(spec.cwd)
        self._follower = Follower(path, self._recorded)
        self._keyboard = Keyboard(terminal, screen, standing)
        self._shells = Shells(self._talk, standing, terminal)
        self._adding = Adding(self._talk, standing, self._keyboard)
        self._title = TypedTitle(
            session_id, path, spec.title, self._keyboard, standing, tasks, self.ready, stored=resumed
        )
        self._options = TuiOptions(self._keyboard, screen, standing, carried, menu, mode, events.update)
        self._commands = commands
        self._asking = Asking(self._talk, standing, events, spec.cwd, carried, self._tell, terminal.name)
        self._over_and_out = False
        """Whether all that is open was told to have ended."""
        self._measured = False
        """Whether it has told its status line anything."""
        self._up = anyio.Event()
        self._turn: Turn | None = None
        self._failure: BridgeError | None = None
        """Why it did not come up."""
        self._gone_event = anyio.Event()
        terminal.farewell = self._farewell

    @property
    def id(self) -> str:
        """The program's own session id."""
        return self._id

    @property
    def lost(self) -> bool:
        """Whether the program is gone; see `BackendSession.lost`."""
        return self._standing.gone is not None

    @property
    def resting(self) -> bool:
        """Whether nothing goes on; see `BackendSession.resting`."""
        return self._up.is_set() and self._turn is None and not self.lost and self._standing.status.name == "idle"

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """See `BackendSession.options`."""
        return self._options.options

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """See `BackendSession.set_option`."""
        await self.ready()
        await self._options.set(option_id, value, resting=self.resting)

    def abandon(self) -> None:
        """Tell the end of all that is open; see `BackendSession.abandon`."""
        self._tell(self._talk.abandon("cancelled"))

    @property
    def background(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background; see `BackendSession.background`."""
        return self._talk.tasks.all()

    async def tasks(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background; see `BackendSession.tasks`."""
        return self._talk.tasks.all()

    async def task_output(self, task_id: str) -> TaskOutput:
        """What a command has printed; see `BackendSession.task_output`."""
        return await self._shells.output(self._id, task_id)

    async def stop_task(self, task_id: str) -> None:
        """End a command; see `BackendSession.stop_task`."""
        self._talk.tasks.stopping(task_id)
        await self._shells.stop(self._id, task_id)

    async def steer(self, prompt: Prompt) -> bool:
        """Type a message into the running turn; see `BackendSession.steer`."""
        return self._turn is not None and await self._adding.add(self._turn, prompt)

    async def rename(self, title: str) -> str:
        """Store a title; see `BackendSession.rename`."""
        return await self._title.rename(title)

    def title_appended(self, title: str) -> bool:
        """A title was appended to the transcript, by the program or by another one; True if it is out of date."""
        self._follower.read()
        return self._title.appended(title)

    async def generate_title(self, prompt_text: str) -> str | None:
        """None: the program names its sessions itself, which is heard from the transcript."""
        return None

    async def keep_generated(self, title: str) -> None:
        """Nothing to do."""

    async def gone(self) -> BackendGone:
        """Wait until the program is gone and tell why."""
        await self._gone_event.wait()
        return self._standing.gone or BackendGone("Claude Code is gone")

    # -- turns ----------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        """Run one turn; see `BackendSession.prompt`."""
        command = slash_of(prompt)
        if command is not None and all(command.name != known.name for known in self._commands.commands):
            command = None
        if command is not None and command.name == "rename":
            raise InvalidParams("prompt: /rename takes the title behind it, and nothing else")
        with in_files(prompt if command is None else (Text(command.argument), *command.others)) as typed:
            return await self._run(prompt, command and command.name, typed)

    async def _run(self, prompt: Prompt, command: str | None, typed: Prompt) -> TurnEnd:
        """One turn.

        Args:
            prompt: What it is, as the client has said it.
            command: The slash command that it is.
            typed: What is to be typed for it, behind the command.
        """
        words, contexts = typed_parts(typed)
        parts = [safe_prompt(words) if command is None else safe_argument(words)]
        parts += [f"\n{safe(context)}" for context in contexts]
        if command is None and not any(parts):
            raise InvalidParams("prompt: nothing in it can be typed")
        turn = self._turn = Turn(letters("".join(parts)) if command is None else "", command)
        try:
            await self.ready(turn)
            if not turn.interrupted:
                await self._title.first()
            if not turn.interrupted:
                await self._submit(turn, prompt, parts)
            if not turn.entered:
                return TurnEnd("cancelled")
            logger.debug("%s: the prompt is taken", self._terminal.name)
            await self._end_of(turn)
            logger.debug("%s: the turn is over", self._terminal.name)
            return self._outcome(turn)
        except BackendGone as exc:
            # Taken or not: once Enter was pressed, it may be in the store.
            exc.untaken = not turn.entered and self._failure is None
            raise
        finally:
            self._turn, turn.over = None, True
            turn.files.close()
            self._standing.stir()
            # What is gone types nothing any more, and its tasks may have ended before the turn that it broke off.
            if not self.lost:
                self._tasks.start_soon(self._title.settle)

    async def _submit(self, turn: Turn, prompt: Prompt, parts: list[str]) -> None:
        """Type the prompt and see that it is taken, as it is and as nothing else."""
        async with self._keyboard.using:
            for _ in range(2):
                await self._at_the_prompt(turn)
                if turn.interrupted:
                    return
                await self._keyboard.clear()
                self._talk.expect(prompt, command=turn.command is not None)
                if turn.command is not None:
                    # The word by keys, what follows by a paste: as one, the program took it for a prompt (2.1.332).
                    await self._keyboard.word(f"/{turn.command} ")
                for number, part in enumerate(filter(None, parts)):
                    await self._keyboard.put(part, whole=number > 0)
                if turn.interrupted:
                    await self._keyboard.clear()
                    return
                turn.blocked = False
                await self._press_enter(turn)
                if not turn.blocked:
                    return
        raise BackendFault("Claude Code took something else than the prompt, which was stopped; send it again")

    async def _press_enter(self, turn: Turn) -> None:
        logger.debug("%s: a prompt is typed", self._terminal.name)
        turn.entered = int(time.time() * 1000)
        for _ in range(ENTERS):
            await self._keyboard.enter()
            taken = await self._standing.until(lambda: self._taken(turn), ENTER_AGAIN)
            if turn.command == CLEAR and self._follows():
                taken = await self._standing.until(lambda: self._taken(turn), MISSING_ROWS) or True
            if taken is None and (turn.submitted or not self._keyboard.box):
                taken = await self._standing.until(lambda: self._taken(turn), ACCEPT_LIMIT)
            if taken is not None:
                return
            if turn.submitted:
                raise BackendFault("Claude Code has not taken the prompt: a hook in your settings may have stopped it")
        raise BackendFault("Claude Code does not take the prompt; close the session and open it again")

    def _taken(self, turn: Turn) -> bool | None:
        """Whether the prompt is in the transcript, or what came in its place was stopped.

        The hook comes earlier; but until then the program may queue the prompt, and would join to it whatever is
        typed meanwhile (2.1.332). A command is recorded when it is done: before, the registry tells that it is at work.
        """
        if turn.command is not None and self._standing.status.since > turn.entered:
            return True
        if turn.command == CLEAR:
            self._follows()
        return self._talk.accepted or turn.blocked or None

    async def _at_the_prompt(self, turn: Turn) -> None:
        """Wait until it is at rest with its input box there, or the turn is stopped: one of its own may run.

        Raises:
            BridgeError: A dialog stands there.
        """

        def look() -> bool | None:
            stopped = turn.interrupted or self._screen.look().dialog is not None
            return stopped or self._standing.is_ready or None

        while await self._standing.until(look, 3600.0) is None:
            logger.info("%s: still waits for the program to be at rest", self._terminal.name)
        dialog = self._screen.look().dialog
        if dialog is not None and not turn.interrupted:
            raise self._standing.blocked(dialog)

    async def _end_of(self, turn: Turn) -> None:
        """Wait for the end of a turn, its last record included."""
        while await self._standing.until(lambda: self._over(turn) if not turn.adding else None, DIALOG_LIMIT) is None:
            status = self._standing.status
            if self._talk.added.open and status.name in RESTING and time.time() - status.since / 1000 > DIALOG_LIMIT:
                # A hook in the person's settings may have stopped it.
                logger.warning("%s: what was typed into the turn is not answered", self._terminal.name)
                self._talk.added.drop()
            if self._waits_unasked and not turn.told:
                turn.told = True
                self._events.update(Notice("error", "Claude Code shows a dialog that can't be put to you here", CANCEL))
        turn.ending = True
        if not self._talk.over:
            soon = self._talk.answered or turn.interrupted or turn.command in OWN_NAMES
            await self._standing.until(lambda: self._talk.over or None, LAST_ROWS if soon else MISSING_ROWS)

    @property
    def _waits_unasked(self) -> bool:
        """Whether a dialog is open that no hook has told of: hooks may be turned off in the person's settings."""
        return self._standing.status.name == "waiting" and not self._standing.questions

    def _follows(self) -> bool:
        """Go with a conversation that begins anew under another id, if it does."""
        now = self._standing.session_id
        if now in (None, self._id):
            return False
        self._follower.read()
        self._id = now
        path = self._path = self._moved(self, now)
        self._agents = None
        self._title.moved(now, path)
        self._follower = Follower(path, self._recorded, begun=True)
        self._events.moved(now)
        self._follower.read()
        return True

    def _over(self, turn: Turn) -> bool | None:
        status = self._standing.status
        if turn.command == CLEAR:
            return self._talk.accepted or None
        rests = status.name in RESTING
        if turn.escaped and status.name == "busy" and self._talk.has_agents and not self._screen.is_at_work:
            # Stopped before its first word, it leaves no record; and with sub-agents at work it is `busy` ever after.
            return True
        if turn.command in OWN_NAMES and self._talk.accepted and rests:
            return True
        return self._talk.over or (rests and status.since > turn.entered and not self._talk.added.open) or None

    def _outcome(self, turn: Turn) -> TurnEnd:
        self._follower.read()
        self._tell(self._talk.finish(interrupted=turn.interrupted))
        outcome = self._talk.outcome
        if turn.interrupted or outcome is None:
            return TurnEnd("cancelled" if turn.interrupted else "end_turn")
        if not isinstance(outcome, Failure):
            return outcome
        if outcome.kind == "login":
            raise LoginNeeded(f"{outcome.text} (run `claude auth login` in a terminal, or set ANTHROPIC_API_KEY)")
        raise BackendFault(outcome.text)

    async def interrupt(self) -> None:
        """Stop the running turn; see `BackendSession.interrupt`."""
        turn = self._turn
        if turn is not None:
            if turn.interrupted:
                return
            turn.interrupted = True
            turn.go.set()
            self._standing.stir()
        if turn is not None and turn.entered:
            await self._escape(turn)
        elif self._talk.own:
            await self._stop_own()

    async def _escape(self, turn: Turn) -> None:
        """Press Escape until the work ends; never at rest, where it would mean something else."""
        try:
            await self._standing.until(lambda: self._taken(turn), ACCEPT_LIMIT)
            for _ in range(ESCAPES):
                if self._turn is not turn or self._over(turn):
                    return
                await self._adding.take_back()
                if not self._asking.stopping:
                    await self._keyboard.escape()
                    turn.escaped = True
                # With a question for a permission open, the refusal of it is the interrupt.
                await self._standing.until(lambda: self._over(turn) or None, ESCAPE_AGAIN)
        except BackendGone:
            return  # The prompt tells it.

    async def _stop_own(self) -> None:
        """Press Escape until what the program does of its own accord has ended."""
        with suppress(BackendGone):
            for _ in range(ESCAPES):
                await self._keyboard.escape()
                since = int(time.time() * 1000)

                def over(since: int = since) -> bool | None:
                    status = self._standing.status
                    return not self._talk.own or (status.name in RESTING and status.since > since) or None

                if await self._standing.until(over, ESCAPE_AGAIN):
                    await self._standing.until(lambda: not self._talk.own or None, LAST_ROWS)
                    # Stopped before its first word, it leaves no record.
                    self._tell(self._talk.end_own())
                    return

    async def _stopped(self) -> None:
        """Wait for the end of a turn that is being stopped, if one is."""
        turn = self._turn
        if turn is not None and turn.interrupted:
            await self._standing.until(
                lambda: self._turn is not turn or self._over(turn) or None, ESCAPES * ESCAPE_AGAIN
            )

    # -- what the program tells -----------------------------------------------------------------

    def stirred(self) -> None:
        """Something of the program may have changed."""
        self._follower.read()
        if self._up.is_set():
            self._options.look()
        self._standing.stir()

    def measured(self, status: JsonObject) -> None:
        """The program has told its status line something new."""
        self._measured = True
        self._standing.stir()
        self._options.measured(status)
        self._tell(self._talk.measured(status))

    async def hook(self, call: JsonObject) -> JsonObject:
        """A hook of the program is called; see `hooks.Answerer`."""
        name = text(call, "hook_event_name")
        logger.debug("%s: hook %s", self._terminal.name, name)
        self._follower.read()
        if call.get("agent_id") is not None:
            self._read_agents()
        answer: JsonObject = {}
        if name == "MessageDisplay":
            self._displayed(call)
        elif name == "PreToolUse":
            self._talk.about_to_call(call)
            if call.get("tool_name") in AGENT_TOOLS:
                self._follow_agents()
        elif name == "UserPromptSubmit":
            answer = self._submitted(text(call, "prompt"))
        elif name == "PermissionRequest":
            answer = await self._asking.asked(call, lambda: self._turn is not None and self._turn.interrupted)
        elif name == "Elicitation":
            answer = await self._asking.elicited(call, self._stopped)
        elif name == "Notification":
            self._asking.notified(call)
        self._standing.stir()
        return answer

    def _displayed(self, call: JsonObject) -> None:
        """A piece of text; the first one waits for what stands before the text, a thought, to be in the transcript."""
        if call.get("index") == 0 and not self.lost:
            self._tasks.start_soon(self._display_soon, call)
        else:
            self._tell(self._talk.displayed(call))

    async def _display_soon(self, call: JsonObject) -> None:
        seen = self._talk.records
        with suppress(BackendGone):
            await self._standing.until(lambda: self._talk.records > seen or None, THOUGHT_LAG)
        self._tell(self._talk.displayed(call))

    def _submitted(self, said: str) -> JsonObject:
        """A prompt is about to be taken: what was not typed so, or not whole, is stopped."""
        turn = self._turn
        if turn is None or turn.submitted or not turn.entered:
            return {}
        heard = letters(unmarked(said))
        if turn.expected and heard != turn.expected and (turn.expected.startswith(heard) or turn.expected in heard):
            logger.warning("%s: stopped a prompt that was not typed so", self._terminal.name)
            turn.blocked = True
            return {"decision": "block", "reason": "This is not what was to be sent."}
        turn.submitted = True
        return {}

    def _follow_agents(self) -> None:
        """A sub-agent is about to begin."""
        if self._agents is None:
            # Imported with the first one.
            from acp_manifold.adapters.claude_tui.agents import Agents

            def take(agent_id: str, call_id: str, record: JsonObject) -> None:
                self._tell(self._talk.recorded_of(agent_id, call_id, record))

            folder = self._path.with_suffix("") / "subagents"
            self._agents = Agents(folder, take, self._talk.has_agent)
            self._watch_folder(folder, self._read_agents)

    def _read_agents(self, _: Path | None = None) -> None:
        if self._agents is not None:
            self._agents.read()
            self._standing.stir()

    def _recorded(self, record: JsonObject) -> None:
        if self._agents is not None and record.get("type") in ("queue-operation", "user"):
            # It may tell the end of a sub-agent, which has said all by then.
            self._agents.read()
        title = title_of(record)
        if title is not None and title.origin == "user":
            self._title.recorded(title.text)
        self._tell(self._talk.recorded(record))
        self._standing.agents = self._talk.has_agents and not self._talk.at_work
        if self._agents is not None and record.get("type") == "assistant":
            # It may have begun one, whose records are there already.
            self._agents.read()

    def _tell(self, updates: list[Update]) -> None:
        for update in () if self._over_and_out else updates:
            self._events.update(update)

    # -- life -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Come up, and see the end. For `serve` only."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._come_up)
            await self._terminal.wait_exited()
            tasks.cancel_scope.cancel()
        self._follower.read()
        self._set_gone(self._last_words())

    async def _come_up(self) -> None:
        try:
            await self._standing.come_up()
        except BackendGone:
            return
        except BridgeError as exc:
            self._failure = exc
            self._set_gone(exc.message)
            await self._terminal.kill()
            return
        with suppress(BackendGone):
            await self._standing.until(lambda: self._measured or None, STATUS_LIMIT)
        logger.debug("%s: is ready", self._terminal.name)
        self._options.look()
        self._events.update(self._commands)
        self._up.set()
        if self._turn is not None:
            self._turn.go.set()

    async def ready(self, turn: Turn | None = None) -> None:
        """Wait until the program has come up, or the turn is stopped.

        Raises:
            BridgeError: It did not; or it is gone.
        """
        stopped = turn or Turn()
        while not (self._up.is_set() or self.lost or stopped.interrupted):
            async with anyio.create_task_group() as race:

                async def first(event: anyio.Event, scope: anyio.CancelScope = race.cancel_scope) -> None:
                    await event.wait()
                    scope.cancel()

                for event in (self._up, self._gone_event, stopped.go):
                    race.start_soon(first, event)
        if self._failure is not None and not isinstance(self._failure, BackendGone):
            raise self._failure
        if self._standing.gone is not None:
            raise BackendGone(self._standing.gone.message)

    def at_rest(self) -> None:
        """The program has ended. For `serve` only."""
        self._over_and_out = True
        self._follower.read()
        self._title.at_rest()

    def close(self) -> None:
        """The session is let go. For `serve` only."""
        self._set_gone("the session was closed")

    def _set_gone(self, reason: str) -> None:
        if self._standing.gone is not None:
            return
        self._standing.gone = BackendGone(reason)
        self._tell(self._talk.abandon("failed"))
        self._gone_event.set()
        self._standing.stir()

    def _last_words(self) -> str:
        words = self._screen.last_words()
        how = f"Claude Code {self._terminal.describe_exit()}"
        return f"{how}; last on its screen:\n{words}" if words else how

    def _farewell(self) -> bytes | None:
        """Ctrl-D twice ends a program that is at its empty prompt."""
        at_prompt = self._up.is_set() and self.resting and self._standing.is_ready and not self._keyboard.box
        return b"\x04\x04" if at_prompt else None
