"""What a client says, and what must come back, written down as it happens.

    Conversation().new().prompt("List the files").allow().hear("two files").end()

The steps are done one after the other. All is about the session that was opened last, or the one named by `on`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from acp_manifold.adapters.replay.client import Client, Prompted, Question, Unexpected
from acp_manifold.bridge.errors import BridgeError
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.values import NamedTuple


class Step(NamedTuple):
    """One thing that is said or must come."""

    verb: str
    words: tuple[str, ...] = ()


class Conversation:
    """Steps, in order; each method adds one and gives the conversation back."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps: list[Step] = list(steps)

    @classmethod
    def of(cls, *lines: str) -> Conversation:
        """One of words, a step a line: the verb, and behind it what it takes: `prompt List the files`."""
        split = [line.partition(" ") for line in lines]
        return cls(Step(verb, (rest,) if rest else ()) for verb, _, rest in split)

    def new(self, name: str = "one") -> Conversation:
        """Open a session, which is called `name` here."""
        return self._add("new", name)

    def load(self, name: str = "one") -> Conversation:
        """Open a session with its history: one that was opened here and closed, one of this title, or the newest."""
        return self._add("load", name)

    def resume(self, name: str = "one") -> Conversation:
        """The same without its history."""
        return self._add("resume", name)

    def ready(self) -> Conversation:
        """Wait until the session has told its commands, which it does once its CLI is up."""
        return self._add("ready")

    def on(self, name: str) -> Conversation:
        """What follows is about the session of this name."""
        return self._add("on", name)

    def server(self, name: str, *command: str) -> Conversation:
        """The session that is opened next has this MCP server: a program with its arguments, no blanks in them."""
        return self._add("server", " ".join((name, *command)))

    def image(self, data: bytes, kind: str = "image/png") -> Conversation:
        """The next prompt bears this image."""
        return self._add("image", f"{kind} {b64encode(data).decode()}")

    def prompt(self, words: str) -> Conversation:
        """Send a prompt; its turn runs from here on."""
        return self._add("prompt", words)

    def hear(self, words: str) -> Conversation:
        """Wait until the agent has said these words, since the last prompt if there was one."""
        return self._add("hear", words)

    def told(self, words: str) -> Conversation:
        """Wait until these words stand in an update that is not of the agent's message, of whichever session."""
        return self._add("told", words)

    def call(self, status: str) -> Conversation:
        """Wait for a tool call in this state."""
        return self._add("call", status)

    def allow(self, kind: str = "allow_once") -> Conversation:
        """Wait for a permission question and say yes, by the first option of this kind."""
        return self._add("answer", kind)

    def reject(self, kind: str = "reject_once") -> Conversation:
        """Wait for a permission question and say no."""
        return self._add("answer", kind)

    def asked(self) -> Conversation:
        """Wait for a permission question and leave it open."""
        return self._add("asked")

    def cancel(self) -> Conversation:
        """Cancel the turn."""
        return self._add("cancel")

    def rename(self, title: str) -> Conversation:
        """Set the title, and wait until it is stored."""
        return self._add("rename", title)

    def title(self, title: str) -> Conversation:
        """Wait until the session is told to be called so."""
        return self._add("title", title)

    def set(self, option: str, value: str) -> Conversation:
        """Set an option, such as `model` or `mode`."""
        return self._add("set", f"{option} {value}")

    def end(self, reason: str = "end_turn") -> Conversation:
        """Wait for the end of the turn, for this reason."""
        return self._add("end", reason)

    def fail(self, words: str = "") -> Conversation:
        """Wait for the turn to fail, with these words in its message."""
        return self._add("fail", words)

    def over(self) -> Conversation:
        """Wait for the end of the turn, for whatever reason."""
        return self._add("over")

    def list(self) -> Conversation:
        """Ask for the sessions; those opened here must be among them."""
        return self._add("list")

    def close(self) -> Conversation:
        """Close the session."""
        return self._add("close")

    def gate(self, name: str) -> Conversation:
        """Open a gate of the scripted model: for who records; a replay knows no gates."""
        return self._add("gate", name)

    def kill(self) -> Conversation:
        """Kill the CLI: for who records; in a replay it ends as it did."""
        return self._add("kill")

    def _add(self, verb: str, *words: str) -> Conversation:
        self.steps.append(Step(verb, words))
        return self


class Talk:
    """A conversation being had.

    Args:
        client: Who has it; initialized.
        cwd: Where its sessions are opened.
        backend: By whom they are served; None: the first there is.
        gate: Opens a gate of the scripted model.
        kill: Kills the CLI.
    """

    def __init__(
        self,
        client: Client,
        cwd: str,
        backend: str | None = None,
        gate: Callable[[str], None] = lambda name: None,
        kill: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._cwd = cwd
        self._backend = backend
        self._gate = gate
        self._kill = kill
        self._sessions: dict[str, str] = {}
        self._name = "one"
        self._turns: dict[str, Prompted] = {}
        self._opened = 0
        """How much had been heard before a session was opened last."""
        self._servers: list[JsonObject] = []
        """Of the session that is opened next."""
        self._images: list[JsonObject] = []
        """Of the next prompt."""
        self._offered = False
        """Whether the answer to that told its commands."""

    async def have(self, conversation: Conversation) -> None:
        """Have it.

        Raises:
            Unexpected: Something else came; the message names the step.
        """
        failure: AssertionError | None = None
        async with anyio.create_task_group() as tasks:
            try:
                for number, step in enumerate(conversation.steps, start=1):
                    await self._do(number, step, tasks)
            except AssertionError as exc:
                failure = exc  # Carried past the task group, which would wrap it.
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _do(self, number: int, step: Step, tasks: TaskGroup) -> None:
        words = step.words[0] if step.words else ""
        try:
            if step.verb == "prompt":
                turn = self._turns[self._session] = Prompted(self._session, len(self._client.heard))
                content: list[JsonObject] = [*self._images, {"type": "text", "text": words}]
                self._images = []
                tasks.start_soon(self._client.prompt, turn, content)
                await checkpoint()  # It is sent by then, ahead of what the next step says.
            else:
                await _VERBS[step.verb](self, words)
        except KeyError as exc:
            raise Unexpected(f"step {number}, {step.verb} {words}: there is no {exc}") from exc
        except (Unexpected, BridgeError) as exc:
            message = exc.message if isinstance(exc, BridgeError) else str(exc)
            raise Unexpected(f"step {number}, {step.verb} {words}: {message}") from exc

    @property
    def _session(self) -> str:
        return self._sessions[self._name]

    async def new(self, name: str) -> None:
        """See `Conversation.new`."""
        params: JsonObject = self._place()
        if self._backend is not None:
            params["_meta"] = {"acp-manifold": {"backend": self._backend}}
        self._name = name or "one"
        self._opened = len(self._client.heard)
        answer = await self._client.ask("session/new", params)
        self._sessions[self._name] = text(answer, "sessionId")
        self._offered = "availableCommands" in answer

    async def load(self, name: str) -> None:
        """See `Conversation.load`."""
        await self._open(name, "session/load" if self._client.version == 1 else "session/resume", replay=True)

    async def resume(self, name: str) -> None:
        """See `Conversation.resume`."""
        await self._open(name, "session/resume", replay=False)

    async def _open(self, name: str, method: str, *, replay: bool) -> None:
        self._name = name or "one"
        if self._name not in self._sessions:
            rows = as_objects((await self._client.ask("session/list", {})).get("sessions"))
            if not rows:
                raise Unexpected("the list has no session")
            titled = [row for row in rows if row.get("title") == self._name]
            self._sessions[self._name] = text((titled or rows)[0], "sessionId")
        self._opened = len(self._client.heard)
        params: JsonObject = {"sessionId": self._session, **self._place()}
        if replay and self._client.version != 1:
            params["replayFrom"] = {"type": "start"}
        self._offered = "availableCommands" in await self._client.ask(method, params)

    def _place(self) -> JsonObject:
        servers, self._servers = self._servers, []
        return {"cwd": self._cwd, "mcpServers": servers}

    async def server(self, words: str) -> None:
        """See `Conversation.server`."""
        name, command, *args = words.split(" ")
        self._servers.append({"type": "stdio", "name": name, "command": command, "args": args, "env": []})

    async def image(self, words: str) -> None:
        """See `Conversation.image`."""
        kind, _, data = words.partition(" ")
        self._images.append({"type": "image", "mimeType": kind, "data": data})

    async def on(self, name: str) -> None:
        """See `Conversation.on`."""
        self._name = name

    async def hear(self, words: str) -> None:
        """See `Conversation.hear`."""
        session, turn = self._session, self._turns.get(self._session)
        start = turn.heard if turn is not None else 0
        await self._client.until(lambda: words in self._client.said(session, start) or None, f"{words!r} said")

    async def told(self, words: str) -> None:
        """See `Conversation.told`."""
        await self._client.until(lambda: self._client.tells(words) or None, f"{words!r} told")

    async def ready(self, words: str) -> None:
        """See `Conversation.ready`."""
        session, start = self._session, self._opened

        def look() -> bool | None:
            told = self._client.updates(session, start)
            kinds = [update.get("sessionUpdate") for update in told]
            return self._offered or "available_commands_update" in kinds or None

        await self._client.until(look, "commands told")

    async def call(self, status: str) -> None:
        """See `Conversation.call`."""
        session = self._session
        await self._client.until(
            lambda: any(update.get("status") == status for update in self._client.updates(session)) or None,
            f"tool call that is {status}",
        )

    async def answer(self, kind: str) -> None:
        """See `Conversation.allow`."""
        (await self._question()).choose(kind)

    async def asked(self, words: str) -> None:
        """See `Conversation.asked`."""
        await self._question()

    async def _question(self) -> Question:
        session, turn = self._session, self._turns.get(self._session)

        def look() -> Question | None:
            waiting = [question for question in self._client.questions if question.session == session]
            found = next((question for question in waiting if not question.answered.is_set()), None)
            if found is None and turn is not None and (ending := self._client.ending(turn)) is not None:
                raise Unexpected(f"the turn ended before a question was asked: {ending}")
            return found

        return await self._client.until(look, "permission question")

    async def cancel(self, words: str) -> None:
        """See `Conversation.cancel`."""
        self._client.tell("session/cancel", {"sessionId": self._session})

    async def rename(self, title: str) -> None:
        """See `Conversation.rename`."""
        await self._client.ask("session/set_title", {"sessionId": self._session, "title": title})

    async def title(self, title: str) -> None:
        """See `Conversation.title`."""
        session = self._session

        def look() -> bool | None:
            return any(update.get("title") == title for update in self._client.updates(session)) or None

        await self._client.until(look, f"title {title!r} told")

    async def set(self, words: str) -> None:
        """See `Conversation.set`."""
        option, _, value = words.partition(" ")
        params: JsonObject = {"sessionId": self._session, "configId": option, "value": value}
        if self._client.version != 1:
            params["type"] = "id"
        await self._client.ask("session/set_config_option", params)

    async def end(self, reason: str) -> None:
        """See `Conversation.end`."""
        ending = await self._ending()
        if ending.get("stopReason") != (reason or "end_turn"):
            raise Unexpected(f"the turn ended otherwise: {obj(ending, 'error').get('message') or ending}")

    async def fail(self, words: str) -> None:
        """See `Conversation.fail`."""
        ending = await self._ending()
        message = text(obj(ending, "error"), "message")
        if "error" not in ending or words not in message:
            raise Unexpected(f"the turn ended otherwise: {message or ending}")

    async def over(self, words: str) -> None:
        """See `Conversation.over`."""
        await self._ending()

    async def _ending(self) -> JsonObject:
        turn = self._turns[self._session]
        return await self._client.until(lambda: self._client.ending(turn), "end of the turn")

    async def list(self, words: str) -> None:
        """See `Conversation.list`."""
        rows = as_objects((await self._client.ask("session/list", {})).get("sessions"))
        missing = set(self._sessions.values()) - {text(row, "sessionId") for row in rows}
        if missing:
            raise Unexpected(f"the list lacks {', '.join(sorted(missing))}")

    async def close(self, words: str) -> None:
        """See `Conversation.close`."""
        await self._client.ask("session/close", {"sessionId": self._session})

    async def gate(self, name: str) -> None:
        """See `Conversation.gate`."""
        self._gate(name)

    async def kill(self, words: str) -> None:
        """See `Conversation.kill`."""
        self._kill()


_VERBS = {
    name: getattr(Talk, name)
    for name in (
        *("new", "load", "resume", "on", "hear", "call", "answer", "asked", "cancel", "rename", "title", "set", "end"),
        *("fail", "over", "list", "close", "gate", "kill", "ready", "told", "server", "image"),
    )
}
