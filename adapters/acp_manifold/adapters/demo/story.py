"""The plot of the demo: what the person at the editor does, and what is to happen then.

Gates of the scripted model hold each turn where the plot needs it, so that what is shown is what
happened, not what the clock allowed. All that is seen goes to the view and into the evidence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from acp_manifold.adapters.model import Model
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .editor import Editor
from .evidence import Evidence
from .view import LABELS, LANES, Lane, View

CLIENT_TITLE = "Mine: the long story"
GENERATED_TITLE = "A title some model made up"
NOTE = "note.txt"

_PACE = "DELAY[45]"

_PROMPTS: dict[Lane, str] = {
    "claude": f"Please leave me a note in this folder. {_PACE} TEXT<<I will leave a note for you in this folder. >>"
    " GATE[together] TEXT<<For that I have to run a command, and I don't do that without asking you.>>"
    f" RUN[echo 'Written by Claude Code, with your permission.' > {NOTE}]"
    f" ;; {_PACE} TEXT<<Thank you. The note is in {NOTE}. While I say this, the other session has been talking to"
    " another program, and neither of us had to wait. >> GATE[alone]"
    " TEXT<<The other turn is cancelled now. That was its business: I am still here, and I finish my sentence.>>",
    "codex": f"Please tell me a long story. {_PACE} TEXT<<This is the beginning of a long story. >> GATE[together]"
    " TEXT<<It is told by Codex, on the same connection that Claude Code is talking on, and it goes on and on."
    " Somebody gives the session a title while it is being told. A model has an idea for a title too, a little"
    " later, and that idea is politely dropped, because a title that a person has set stays. The story does not"
    " mind. It goes on, and on, and would not have ended here, or anywhere, had nobody cancelled it>>"
    " GATE[for ever]",
}

_PATIENCE = 10.0
"""Seconds that any one event of the plot may take."""


class Story:
    """One telling of the story."""

    def __init__(self, view: View, model: Model, cwd: str) -> None:
        self.evidence = Evidence()
        self._view = view
        self._model = model
        self._cwd = cwd
        self._sessions: dict[Lane, str] = {}
        self._happened = anyio.Event()
        self._answered = anyio.Event()
        self._hear: dict[str, Callable[[Lane, JsonObject], None]] = {
            "agent_message_chunk": self._hear_chunk,
            "tool_call": self._hear_call,
            "tool_call_update": self._hear_call_end,
            "session_info_update": self._hear_info,
        }

    async def tell(self, editor: Editor) -> None:
        """Play it from the first session to the list.

        Raises:
            TimeoutError: Something of the plot didn't happen.
            BridgeError: The agent refused something, or is gone.
        """
        self._model.titles.answer(GENERATED_TITLE, gate="titles")
        await editor.initialize()
        for lane in LANES:
            self._sessions[lane] = await editor.new_session(self._cwd, lane)
            self._view.note(lane, "session/new")
        async with anyio.create_task_group() as turns:
            for lane in LANES:
                turns.start_soon(self._turn, editor, lane)
            await self._speak_together()
            await self._within(self._answered.wait())
            await self._rename(editor)
            await self._cancel(editor)
        await self._list(editor)

    def heard(self, session: str, update: JsonObject) -> None:
        """An update of a session."""
        lane = self._lane(session)
        if lane is None:
            return
        hear = self._hear.get(text(update, "sessionUpdate"))
        if hear is not None:
            hear(lane, update)
        self._wake()

    async def asked(self, session: str, params: JsonObject) -> str | None:
        """A permission question: let it be read, say yes."""
        lane = self._lane(session)
        options = [option for option in as_objects(params.get("options")) if option.get("kind") == "allow_once"]
        if lane is None or not options:
            return None
        wish = text(obj(params, "toolCall"), "title") or "a command"
        self.evidence.asked(lane, note_was_there=(Path(self._cwd) / NOTE).exists())
        self._view.note(lane, f"asks: {wish} ?")
        self._view.narrate(f"{LABELS[lane]} asks for permission: allow, this once.")
        await anyio.sleep(1.0)
        self._view.note(lane, "you: yes, once")
        self._answered.set()
        return text(options[0], "optionId")

    async def _turn(self, editor: Editor, lane: Lane) -> None:
        self._view.note(lane, f"you: {_PROMPTS[lane].partition('.')[0]}.")
        stop = await editor.prompt(self._sessions[lane], _PROMPTS[lane])
        self.evidence.ended(lane, stop)
        self._view.note(lane, f"turn ended: {stop}")
        self._wake()

    async def _speak_together(self) -> None:
        self._view.narrate("Two prompts, one connection: both agents answer at once.")
        gate = self._model.gate("together")
        await self._within(gate.reached(2))
        gate.set()

    async def _rename(self, editor: Editor) -> None:
        """Set a title while a model is making one up for the same session, then let the model's come."""
        titles = self._model.gate("titles")
        await self._within(titles.reached(len(LANES)))
        self._view.narrate(f'Codex\'s session is renamed in mid-turn: "{CLIENT_TITLE}"')
        await anyio.sleep(0.6)
        answer = await editor.ask("session/set_title", {"sessionId": self._sessions["codex"], "title": CLIENT_TITLE})
        self.evidence.renamed("codex", text(answer, "title"))
        self._view.title("codex", text(answer, "title"))
        await anyio.sleep(0.6)
        self._view.narrate(f'Only now the model has its idea, for both: "{GENERATED_TITLE}"')
        titles.set()
        for request in [request for request in self._model.requests if request.asked.title]:
            await self._within(request.finished.wait())
        self.evidence.generated(self._model.titles.asked)
        await self._until(lambda: GENERATED_TITLE in self.evidence.titles["claude"])
        await anyio.sleep(1.0)

    async def _cancel(self, editor: Editor) -> None:
        await self._within(self._model.gate("for ever").reached())
        await self._within(self._model.gate("alone").reached())
        self._view.narrate("Codex's turn is cancelled. Claude Code goes on.")
        editor.tell("session/cancel", {"sessionId": self._sessions["codex"]})
        await self._until(lambda: "codex" in self.evidence.ends)
        self._model.gate("alone").set()
        await self._until(lambda: "claude" in self.evidence.ends)

    async def _list(self, editor: Editor) -> None:
        self._view.narrate("One list over both.")
        rows = as_objects((await editor.ask("session/list", {"cwd": self._cwd})).get("sessions"))
        for row in rows:
            lane = self._lane(text(row, "sessionId"))
            if lane is not None:
                self.evidence.listed(lane, text(row, "title"))
        self.evidence.note_is_there = (Path(self._cwd) / NOTE).exists()

    def _hear_chunk(self, lane: Lane, update: JsonObject) -> None:
        words = text(obj(update, "content"), "text")
        self.evidence.said(lane, words)
        self._view.say(lane, words)

    def _hear_call(self, lane: Lane, update: JsonObject) -> None:
        self._view.note(lane, f"tool: {text(update, 'title')}")

    def _hear_call_end(self, lane: Lane, update: JsonObject) -> None:
        if text(update, "status") in {"completed", "failed"}:
            self._view.note(lane, f"tool {text(update, 'status')}")

    def _hear_info(self, lane: Lane, update: JsonObject) -> None:
        if title := text(update, "title"):
            self.evidence.titles[lane].append(title)
            self._view.title(lane, title)

    def _lane(self, session: str) -> Lane | None:
        return next((lane for lane in LANES if self._sessions.get(lane) == session), None)

    def _wake(self) -> None:
        happened, self._happened = self._happened, anyio.Event()
        happened.set()

    async def _until(self, look: Callable[[], bool]) -> None:
        with anyio.fail_after(_PATIENCE):
            while not look():
                await self._happened.wait()

    async def _within(self, wait: Awaitable[None]) -> None:
        with anyio.fail_after(_PATIENCE):
            await wait
