"""A small ACP client that says what it is told to and keeps all that it hears, for either version of the protocol."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from acp_manifold.bridge.errors import REQUEST_CANCELLED, BridgeError, RemoteError
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.bridge.peer import Call, Peer, Receive
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text

LIMIT = 30.0
"""Seconds that anything may take."""

T = TypeVar("T")


class Unexpected(AssertionError):
    """What was to come did not; the message says what did."""


class Question:
    """A permission question of the agent."""

    def __init__(self, params: JsonObject) -> None:
        self.session = text(params, "sessionId")
        self.params = params
        self.answer: JsonObject | None = None
        self.answered = anyio.Event()

    def choose(self, kind: str) -> None:
        """Answer with the first option of a kind, such as `allow_once`; without one, dismiss it."""
        options = as_objects(self.params.get("options"))
        chosen = next((text(option, "optionId") for option in options if option.get("kind") == kind), None)
        outcome: JsonObject = {"outcome": "cancelled"}
        if chosen is not None:
            outcome = {"outcome": "selected", "optionId": chosen}
        self.answer = {"outcome": outcome}
        self.answered.set()


class Prompted:
    """A prompt on its way."""

    def __init__(self, session: str, heard: int) -> None:
        self.session = session
        self.heard = heard
        """How much had been heard before."""
        self.result: JsonObject | None = None
        self.error: BridgeError | None = None


class Client:
    """The client's end of a link.

    Args:
        outbound: The way to the agent.
        version: The protocol version to agree on.
    """

    def __init__(self, outbound: Outbound, version: int = 1) -> None:
        self.version = version
        self.heard: list[JsonObject] = []
        """All that the agent said: its requests and notifications, as `method` and `params`, and its answers to ours,
        as `answer`, the method asked, `session`, if it was of one, and `result` or `error`."""
        self.questions: list[Question] = []
        self._peer = Peer(self, outbound)
        self._stirred = anyio.Event()
        self._gone = False

    async def run(self, receive: Receive) -> None:
        """Hear until the agent ends."""
        await self._peer.run(receive)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and give its result.

        Raises:
            RemoteError: It was answered with an error.
            PeerGone: The agent ended first.
        """
        session = text(params, "sessionId")
        answer: JsonObject = {"answer": method, "session": session} if session else {"answer": method}
        try:
            result = as_object(await self._peer.request(method, params))
        except BridgeError as exc:
            self._hear({**answer, "error": {"message": exc.message}})
            raise
        self._hear({**answer, "result": result})
        return result

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._peer.notify(method, params)

    async def initialize(self) -> JsonObject:
        """Agree on the version."""
        info: JsonObject = {"name": "acp-manifold replay", "version": "1"}
        names = ("clientCapabilities", "clientInfo") if self.version == 1 else ("capabilities", "info")
        return await self.ask("initialize", {"protocolVersion": self.version, names[0]: {}, names[1]: info})

    async def prompt(self, prompted: Prompted, content: Sequence[JsonObject]) -> None:
        """Send a prompt and keep its answer."""
        params: JsonObject = {"sessionId": prompted.session, "prompt": list(content)}
        try:
            prompted.result = await self.ask("session/prompt", params)
        except BridgeError as exc:
            prompted.error = exc
        self._stir()

    def ending(self, prompted: Prompted) -> JsonObject | None:
        """How a turn ended: `stopReason`, or `error` with a message; None while it runs."""
        error = prompted.error
        if isinstance(error, RemoteError) and error.remote_code == REQUEST_CANCELLED:
            # In v2, of a prompt that was never taken in.
            return {"stopReason": "cancelled"}
        if prompted.error is not None:
            return {"error": {"message": prompted.error.message}}
        if prompted.result is None or self.version == 1:
            return prompted.result
        taken = False
        for update in self.updates(prompted.session, prompted.heard):
            kind = text(update, "sessionUpdate")
            taken = taken or (kind == "user_message" and update.get("messageId") == prompted.result.get("messageId"))
            if taken and kind == "state_update" and ("stopReason" in update or "error" in update):
                return update
        return None

    def updates(self, session: str, start: int = 0) -> list[JsonObject]:
        """The updates of a session."""
        told = [obj(message, "params") for message in self.heard[start:] if message.get("method") == "session/update"]
        return [obj(params, "update") for params in told if params.get("sessionId") == session]

    def said(self, session: str, start: int = 0) -> str:
        """What the agent said in a session, from some message on."""
        chunks = [
            update for update in self.updates(session, start) if update.get("sessionUpdate") == "agent_message_chunk"
        ]
        return "".join(text(obj(chunk, "content"), "text") for chunk in chunks)

    def tells(self, words: str) -> bool:
        """Whether these words stand in any update but of the agent's message."""
        updates = [obj(obj(message, "params"), "update") for message in self.heard]
        told = [update for update in updates if update.get("sessionUpdate") != "agent_message_chunk"]
        return any(words in json.dumps(update, ensure_ascii=False) for update in told)

    async def until(self, look: Callable[[], T | None], what: str, limit: float = LIMIT) -> T:
        """Wait until `look` gives something, looking after each message.

        Raises:
            Unexpected: It does not, or the agent ended.
        """
        with anyio.move_on_after(limit):
            while True:
                found = look()
                if found is not None:
                    return found
                if self._gone:
                    raise Unexpected(f"the agent ended before there was {what}")
                self._stirred = anyio.Event()
                await self._stirred.wait()
        raise Unexpected(f"there was no {what} within {limit:g} s; the last heard: {self.heard[-1:]}")

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve a question, which is kept until it is answered or taken back."""
        self._hear({"method": method, "params": params})
        if method == "session/request_permission":
            return self._answer(Question(params))
        return {"action": "cancel"}

    def notification(self, method: str, params: JsonObject) -> None:
        """Hear something."""
        self._hear({"method": method, "params": params})

    def closed(self) -> None:
        """The agent ended."""
        self._gone = True
        self._stir()

    def _answer(self, question: Question) -> Awaitable[object]:
        self.questions.append(question)

        async def answered() -> object:
            try:
                await question.answered.wait()
            finally:
                self.questions.remove(question)
            return question.answer

        self._stir()
        return answered()

    def _hear(self, message: JsonObject) -> None:
        self.heard.append(message)
        self._stir()

    def _stir(self) -> None:
        self._stirred.set()
