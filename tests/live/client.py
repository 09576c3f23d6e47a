"""An ACP client for tests: says what it is told to, hears everything, and lets nothing wrong pass.

Every line received is checked against the protocol schema at once. The first wrong one is kept, and
from then on every wait, and the end of the client, fails with it. Waits are on events and bounded.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias, TypeVar

import anyio
from anyio.abc import AnyByteReceiveStream, AnyByteSendStream

from acp_manifold.translators.narrow import JsonObject, as_int, as_object, as_objects, obj, text
from tests.schema import SchemaViolation, schema

T = TypeVar("T")
Id: TypeAlias = int | str | None

STOPPED = {1: "failed", 2: "cancelled"}
"""The status of a tool call that was stopped, by version: v1 has no word for it."""

ANSWER_LIMIT = 40.0
"""Seconds a wait may take, unless a test says otherwise: a CLI starts in half a second, on a busy machine in ten."""


def of_sessions(greeting: JsonObject) -> JsonObject:
    """What an answer to `initialize`, of either version, tells of sessions."""
    if "capabilities" in greeting:
        return obj(obj(greeting, "capabilities"), "session")
    return obj(obj(greeting, "agentCapabilities"), "sessionCapabilities")


class AcpError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, error: JsonObject) -> None:
        self.code = as_int(error.get("code")) or 0
        self.message = text(error, "message")
        self.data = error.get("data")
        super().__init__(f"{self.code} {self.message} {self.data if self.data is not None else ''}".rstrip())


class Gone(AssertionError):
    """The agent closed its output while an answer or an update was awaited."""


@dataclass(frozen=True, slots=True)
class Update:
    """One `session/update`, in the order heard."""

    session: str
    kind: str
    """The tag: `agent_message_chunk`, `tool_call`, ..."""
    body: JsonObject


@dataclass(eq=False, slots=True)
class Question:
    """One `session/request_permission`; open until it is answered or withdrawn."""

    id: Id
    session: str
    params: JsonObject
    _send: Callable[[JsonObject], None]
    answered: bool = False
    withdrawn: anyio.Event = field(default_factory=anyio.Event)
    """Set when the agent takes the question back with `$/cancel_request`."""

    @property
    def tool_call(self) -> JsonObject:
        subject = obj(self.params, "subject")
        if subject.get("type") == "command":
            asked = {"command": subject["command"], "cwd": subject["cwd"]}
            return {"toolCallId": subject["toolCallId"], "title": self.params["title"], "rawInput": asked}
        return obj(subject or self.params, "toolCall")

    def option(self, kind: str) -> str:
        """The id of the first option of this kind, such as `allow_once`."""
        options = as_objects(self.params.get("options"))
        found = [text(option, "optionId") for option in options if option.get("kind") == kind]
        assert found, f"No option of kind {kind} in {options}"
        return found[0]

    def choose(self, option: str) -> None:
        """Answer with the option of this id."""
        self._answer({"outcome": "selected", "optionId": option})

    def dismiss(self) -> None:
        """Answer that nothing was chosen."""
        self._answer({"outcome": "cancelled"})

    def _answer(self, outcome: JsonObject) -> None:
        self.answered = True
        self._send({"jsonrpc": "2.0", "id": self.id, "result": {"outcome": outcome}})


@dataclass(eq=False, slots=True)
class Form:
    """One `elicitation/create`; open until it is answered or withdrawn."""

    id: Id
    session: str
    params: JsonObject
    _send: Callable[[JsonObject], None]
    answered: bool = False
    withdrawn: anyio.Event = field(default_factory=anyio.Event)
    """Set when the agent takes the form back with `$/cancel_request`."""

    @property
    def fields(self) -> JsonObject:
        """The properties it asks for."""
        return obj(obj(self.params, "requestedSchema"), "properties")

    def accept(self, **content: object) -> None:
        """Fill it in; a page to open is opened."""
        self.answer({"action": "accept", "content": content} if "url" not in self.params else {"action": "accept"})

    def decline(self) -> None:
        """Say no."""
        self.answer({"action": "decline"})

    def dismiss(self) -> None:
        """Say nothing."""
        self.answer({"action": "cancel"})

    def answer(self, result: object) -> None:
        """Answer with this."""
        self.answered = True
        self._send({"jsonrpc": "2.0", "id": self.id, "result": result})


Answerer: TypeAlias = Callable[[Question], None]


def allow(question: Question) -> None:
    """Say yes, this once."""
    question.choose(question.option("allow_once"))


def reject(question: Question) -> None:
    """Say no, this once."""
    question.choose(question.option("reject_once"))


def leave_open(question: Question) -> None:
    """Say nothing: the test answers `Client.questions` itself."""


class Pending:
    """A request on its way: its id, and its answer once it is there."""

    def __init__(self, client: Client, request_id: Id, method: str) -> None:
        self.id = request_id
        self.method = method
        self.session: str | None = None
        """The session that the params name."""
        self.response: JsonObject | None = None
        self._client = client

    @property
    def done(self) -> bool:
        """Whether the answer is there."""
        return self.response is not None

    async def answer(self, limit: float = ANSWER_LIMIT) -> JsonObject:
        """The result.

        Raises:
            AcpError: The answer is an error.
            Gone: No answer will come.
            TimeoutError: None came within `limit` seconds.
        """
        response = await self._client.wait_for(lambda: self.response, f"the answer to {self.method}", limit)
        if "error" in response:
            raise AcpError(obj(response, "error"))
        return as_object(response.get("result"))

    async def error(self, limit: float = ANSWER_LIMIT) -> AcpError:
        """The error; a result fails the test."""
        try:
            result = await self.answer(limit)
        except AcpError as error:
            return error
        raise AssertionError(f"{self.method} was to fail, and gave {result}")


class Turn(Pending):
    """A prompt of a v2 client, which has its answer when its turn is over, as one of v1 has it."""

    def __init__(self, client: Client, request_id: Id, session: str) -> None:
        super().__init__(client, request_id, "session/prompt")
        self._session = session
        self._heard = len(client.updates)

    @property
    def done(self) -> bool:
        """Whether the turn is over, or the prompt was refused."""
        return self.response is not None and ("error" in self.response or self._end() is not None)

    async def answer(self, limit: float = ANSWER_LIMIT) -> JsonObject:
        """The state that the turn ended in; for what is raised see `Pending.answer`."""
        await super().answer(limit)
        state = await self._client.wait_for(self._end, "the end of a turn", limit)
        if "error" in state:
            raise AcpError(obj(state, "error"))
        return state

    def _end(self) -> JsonObject | None:
        named = obj(self.response or {}, "result").get("messageId")
        taken = False
        for update in self._client.updates[self._heard :]:
            if update.session == self._session:
                taken = taken or (update.kind == "user_message" and update.body["messageId"] == named)
                if taken and update.kind == "state_update" and "stopReason" in update.body:
                    return update.body
        return None


class Client:
    """One connection to an agent. Made by `connected`."""

    def __init__(self) -> None:
        self.version = 1
        """The protocol version to initialize with, and by whose schema all is judged."""
        self.updates: list[Update] = []
        self.questions: list[Question] = []
        self.lines: list[JsonObject] = []
        """Every message heard, in order."""
        self.on_question: Answerer = allow
        """What to do with a permission question, at once."""
        self.forms: list[Form] = []
        self.on_form: Callable[[Form], None] = lambda form: None
        """What to do with a form, or a page to open, at once; by itself it is left to the test."""
        self.pages_done: list[str] = []
        """The ids of elicitations that were told to be complete."""
        self.closed = False
        """Whether the agent has closed its output."""
        self._commands: dict[str, list[JsonObject]] = {}
        self._ids = count(1)
        self._pending: dict[tuple[type, Id], Pending] = {}
        self._outgoing: list[bytes] = []
        self._to_send = anyio.Event()
        self._closing = False
        self._reads = anyio.Event()
        self._heard = anyio.Event()
        self._fault: AssertionError | None = None

    def send_line(self, line: bytes) -> None:
        """Send one line as it is, garbage perhaps; the newline is added."""
        self._outgoing.append(line + b"\n")
        self._to_send.set()

    def send(self, message: object) -> None:
        """Send one value as JSON."""
        self.send_line(json.dumps(message).encode())

    def expect(self, request_id: Id) -> Pending:
        """Wait for an answer to a line that is sent as it is."""
        pending = self._pending[type(request_id), request_id] = Pending(self, request_id, "a line of the test's own")
        return pending

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method: str, params: object, *, request_id: Id = None) -> Pending:
        """Send a request and don't wait for its answer."""
        return self._start(Pending(self, next(self._ids) if request_id is None else request_id, method), params)

    def _start(self, pending: Pending, params: object) -> Pending:
        self._pending[type(pending.id), pending.id] = pending
        pending.session = text(as_object(params), "sessionId") or None
        self.send({"jsonrpc": "2.0", "id": pending.id, "method": pending.method, "params": params})
        return pending

    async def request(self, method: str, params: object, *, limit: float = ANSWER_LIMIT) -> JsonObject:
        """Send a request and give its result; for what is raised see `Pending.answer`."""
        return await self.start(method, params).answer(limit)

    async def fails(self, method: str, params: object) -> AcpError:
        """Send a request that has to fail, and give its error."""
        return await self.start(method, params).error()

    async def wait_for(self, look: Callable[[], T | None], what: str, limit: float = ANSWER_LIMIT) -> T:
        """Wait until `look` gives something true, looking again after each line heard.

        Raises:
            SchemaViolation: The agent said something wrong meanwhile, or before.
            Gone: The agent closed its output first.
            TimeoutError: It took more than `limit` seconds; the text says what was awaited.
        """
        with anyio.move_on_after(limit):
            while True:
                if self._fault is not None:
                    raise self._fault
                if found := look():
                    return found
                if self.closed:
                    raise Gone(f"The agent closed its output before {what} came")
                await self._heard.wait()
        raise TimeoutError(f"{what} did not come within {limit} s; the last heard: {self.lines[-3:]}")

    async def initialize(self, **capabilities: object) -> JsonObject:
        """The usual opening."""
        info = {"name": "acp-manifold tests", "version": "0"}
        params: JsonObject = {"protocolVersion": self.version}
        if self.version == 1:
            params |= {"clientCapabilities": capabilities, "clientInfo": info}
        else:
            params |= {"capabilities": capabilities, "info": info}
        return await self.request("initialize", params)

    async def new_session(self, cwd: str, backend: str | None = None, title: str | None = None) -> str:
        """Open a session and give its id."""
        ours = {key: value for key, value in (("backend", backend), ("title", title)) if value is not None}
        params: JsonObject = {"cwd": cwd, "mcpServers": [], **({"_meta": {"acp-manifold": ours}} if ours else {})}
        return text(await self.request("session/new", params), "sessionId")

    def prompt(self, session: str, words: str) -> Pending:
        """Send a text prompt and don't wait for the end of its turn, which is the answer."""
        return self.say(session, [{"type": "text", "text": words}])

    def say(self, session: str, prompt: Sequence[Mapping[str, object]], **more: object) -> Pending:
        """Send a prompt and don't wait for the end of its turn, which is the answer."""
        params: JsonObject = {"sessionId": session, "prompt": prompt, **more}
        if self.version == 1:
            return self.start("session/prompt", params)
        return self._start(Turn(self, next(self._ids), session), params)

    async def load(self, session: str, cwd: str, **more: object) -> JsonObject:
        """Open a session of the store and have its history told."""
        params: JsonObject = {"sessionId": session, "cwd": cwd, "mcpServers": [], **more}
        if self.version == 1:
            return await self.request("session/load", params)
        return await self.request("session/resume", {**params, "replayFrom": {"type": "start"}})

    async def set_option(self, session: str, option: str, value: object) -> list[JsonObject]:
        """Set an option of a session, and give all of them as they are then; in v2 its id is `configId`."""
        params: JsonObject = {"sessionId": session, "configId": option, "value": value}
        if self.version == 2 or isinstance(value, bool):
            params["type"] = "boolean" if isinstance(value, bool) else "id"
        answer = await self.request("session/set_config_option", params)
        return as_objects(answer["configOptions"])

    async def ask(self, session: str, words: str) -> str:
        """Run a whole turn and give its stop reason."""
        return text(await self.prompt(session, words).answer(), "stopReason")

    async def list_sessions(self, **params: object) -> list[JsonObject]:
        """The first page of the session list."""
        return as_objects((await self.request("session/list", params)).get("sessions"))

    def heard(self, session: str, kind: str | None = None) -> list[JsonObject]:
        """The updates of one session so far, of one kind or all."""
        return [u.body for u in self.updates if u.session == session and kind in (None, u.kind)]

    def said(self, session: str, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of one kind of one session, joined."""
        return "".join(text(obj(body, "content"), "text") for body in self.heard(session, kind))

    def calls(self, session: str) -> list[JsonObject]:
        """The updates that began tool calls: in v2, the first of each."""
        if self.version == 1:
            return self.heard(session, "tool_call")
        first: dict[object, JsonObject] = {}
        for body in self.heard(session, "tool_call_update"):
            first.setdefault(body["toolCallId"], body)
        return list(first.values())

    def shown(self, session: str) -> str:
        """The text that tool calls showed, and what commands printed into terminals."""
        bodies = [item for body in self.heard(session) for item in as_objects(body.get("content"))]
        printed = [b64decode(text(body, "data")).decode() for body in self.heard(session, "terminal_output_chunk")]
        return "".join([*printed, *(text(obj(item, "content"), "text") for item in bodies)])

    def commands(self, session: str) -> list[JsonObject]:
        """The slash commands that the session was told to have last."""
        return self._commands.get(session, [])

    def titles(self, session: str) -> list[object]:
        """The titles the session was announced with, in order."""
        return [body["title"] for body in self.heard(session, "session_info_update") if "title" in body]

    async def hears(self, session: str, words: str, limit: float = ANSWER_LIMIT) -> None:
        """Wait until the agent has said these words in the session."""
        await self.wait_for(lambda: words in self.said(session) or None, f"{words!r} in session {session}", limit)

    async def question(self, session: str, limit: float = ANSWER_LIMIT) -> Question:
        """Wait for a permission question of the session that is neither answered nor withdrawn."""

        def look() -> Question | None:
            waiting = (q for q in self.questions if not q.answered and not q.withdrawn.is_set())
            return next((q for q in waiting if q.session == session), None)

        return await self.wait_for(look, f"a permission question of session {session}", limit)

    async def form(self, session: str, limit: float = ANSWER_LIMIT) -> Form:
        """Wait for a form of the session, or a page to open, that is neither answered nor withdrawn."""

        def look() -> Form | None:
            waiting = (f for f in self.forms if not f.answered and not f.withdrawn.is_set())
            return next((f for f in waiting if f.session == session), None)

        return await self.wait_for(look, f"a form of session {session}", limit)

    def close(self) -> None:
        """Say nothing more: the agent's input ends behind what was sent so far."""
        self._closing = True
        self._to_send.set()

    def stop_reading(self) -> None:
        """Take nothing more from the agent until `read_on`."""
        self._reads = anyio.Event()

    def read_on(self) -> None:
        """Take what has come meanwhile, and what comes."""
        self._reads.set()

    async def ended(self, limit: float = 5.0) -> None:
        """Wait until the agent has closed its output, and fail if it has ever said anything wrong."""
        with anyio.fail_after(limit):
            while not self.closed:
                await self._heard.wait()
        if self._fault is not None:
            raise self._fault

    async def run_sender(self, stream: AnyByteSendStream) -> None:
        """Send what is queued until `close`; what an agent that is gone doesn't take is dropped."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while self._outgoing or not self._closing:
                await self._to_send.wait()
                self._to_send = anyio.Event()
                lines, self._outgoing = self._outgoing, []
                if lines:
                    await stream.send(b"".join(lines))
        await stream.aclose()

    async def run_reader(self, stream: AnyByteReceiveStream) -> None:
        """Hear lines until the agent closes its output."""
        begun: list[bytes] = []
        self._reads.set()
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                await self._reads.wait()
                first, *others = (await stream.receive()).split(b"\n")
                begun.append(first)
                for next_begun in others:
                    self._take(b"".join(begun))
                    begun = [next_begun]
        self.closed = True
        if any(begun):
            self._fail(SchemaViolation(f"The output ends inside a line: {b''.join(begun)!r:.300}"))
        self._wake()

    def _take(self, line: bytes) -> None:
        try:
            self._hear(json.loads(line))
        except AssertionError as fault:
            self._fail(fault)
        except ValueError:
            self._fail(SchemaViolation(f"Not JSON on stdout: {line!r:.300}"))
        self._wake()

    def _hear(self, message: object) -> None:
        message = as_object(message)
        self.lines.append(message)
        pending = None if "method" in message else self._answered(message)
        schema(self.version).check(message, answers=pending.method if pending else None)
        if pending is not None:
            pending.response = message
            self._learn(pending, obj(message, "result"))
        params = obj(message, "params")
        match message.get("method"):
            case "session/update":
                update = obj(params, "update")
                self.updates.append(Update(text(params, "sessionId"), text(update, "sessionUpdate"), update))
                if "availableCommands" in update:
                    self._commands[text(params, "sessionId")] = as_objects(update["availableCommands"])
            case "session/request_permission":
                self._ask(message, params)
            case "elicitation/create":
                form = Form(_request_id(message), text(params, "sessionId"), params, self.send)
                self.forms.append(form)
                self.on_form(form)
            case "elicitation/complete":
                self.pages_done.append(text(params, "elicitationId"))
            case "$/cancel_request":
                asked: list[Question | Form] = [*self.questions, *self.forms]
                for question in asked:
                    if question.id == params.get("requestId") and not question.answered:
                        question.withdrawn.set()
            case _:
                pass

    def _learn(self, pending: Pending, answer: JsonObject) -> None:
        """In v2 the answer that opens a session tells its commands, if they are known by then."""
        session = text(answer, "sessionId") or pending.session
        if session is not None and "availableCommands" in answer:
            self._commands[session] = as_objects(answer["availableCommands"])

    def _answered(self, message: JsonObject) -> Pending | None:
        """The request that a response answers; an error to nobody (id null) answers none."""
        request_id = message.get("id")
        assert request_id is None or isinstance(request_id, int | str)
        pending = self._pending.pop((type(request_id), request_id), None)
        if pending is None and request_id is not None:
            raise SchemaViolation(f"An answer nobody waits for: {message!r:.300}")
        return pending

    def _ask(self, message: JsonObject, params: JsonObject) -> None:
        request_id = _request_id(message)
        assert all(request_id != question.id for question in self.questions), f"Question id used twice: {request_id!r}"
        question = Question(request_id, text(params, "sessionId"), params, self.send)
        self.questions.append(question)
        self.on_question(question)

    def _fail(self, fault: AssertionError) -> None:
        self._fault = self._fault or fault

    def _wake(self) -> None:
        heard, self._heard = self._heard, anyio.Event()
        heard.set()


def _request_id(message: JsonObject) -> Id:
    request_id = message.get("id")
    assert isinstance(request_id, int | str)
    return request_id


@asynccontextmanager
async def connected(output: AnyByteReceiveStream, input: AnyByteSendStream) -> AsyncGenerator[Client]:
    """A client of the agent that writes to `output` and reads from `input`.

    At the end `input` is closed, and the agent has five seconds to close `output`.

    Raises:
        SchemaViolation: At the end, when the agent said something wrong at any time.
    """
    client = Client()
    async with input, output, anyio.create_task_group() as tasks:
        tasks.start_soon(client.run_reader, output)
        tasks.start_soon(client.run_sender, input)
        yield client
        client.close()
        await client.ended()
        tasks.cancel_scope.cancel()
