"""A stand-in for `codex app-server` that plays a script, and the handle a test holds it by.

As a program it speaks the app-server's JSON-RPC: it answers what our adapter asks (threads, names,
lists, history, account, terminals), keeps its threads in a file, so that a second process knows
them, and plays one list of steps for each turn, in the order in which turns start. When the lists
are used up, a turn says "ok". Everything it is started with and receives goes to a log.

In a test:

    fake = FakeCodex(tmp_path)
    fake.plays([delta("Hello"), gate("go"), done()], [wait("interrupt"), done("interrupted")])
    ...                                   # run the backend or the bridge with fake.env
    fake.open("go")
    assert fake.requests("thread/name/set") == [{"threadId": ..., "name": "..."}]

Strings in what is emitted may hold `$T` and `$U` (thread and turn of the script), `$T0`, `$U0`, `$T1`, ...
(those of the first turn, the second, ...) and `$CWD`. A turn whose script has no `wait("interrupt")` is
ended as interrupted as soon as it is interrupted.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

Step: TypeAlias = dict[str, Any]
Json: TypeAlias = dict[str, Any]

FOLDER_VARIABLE = "FAKE_CODEX_FOLDER"
"""Where the fake finds its script, gates, threads and log."""


# --- steps -----------------------------------------------------------------------------------------------------------


def hold(name: str) -> Step:
    """As the first step of a turn: answer `turn/start` only when the test opens this gate."""
    return {"do": "hold", "name": name}


def unstarted(name: str) -> Step:
    """As the first step of a turn: answer at once, but tell `turn/started` only when the test opens this gate."""
    return {"do": "unstarted", "name": name}


def wait(kind: str) -> Step:
    """Wait for the next `interrupt` of this turn, or `answer` to an `ask_*` of it."""
    return {"do": "wait", "kind": kind}


def delta(text: str, item: str = "msg_1") -> Step:
    """The agent says a piece of a message."""
    return notify("item/agentMessage/delta", threadId="$T", turnId="$U", itemId=item, delta=text)


def thought(text: str, item: str = "rs_1") -> Step:
    """The agent thinks a piece of a thought."""
    return notify(
        "item/reasoning/summaryTextDelta", threadId="$T", turnId="$U", itemId=item, delta=text, summaryIndex=0
    )


def started(item: Json) -> Step:
    """An item begins."""
    return notify("item/started", threadId="$T", turnId="$U", item=item)


def completed(item: Json) -> Step:
    """An item ends."""
    return notify("item/completed", threadId="$T", turnId="$U", item=item)


def prints(item: str, text: str, times: int = 1) -> Step:
    """A command prints a text, so many times, a notification each."""
    params = {"threadId": "$T", "turnId": "$U", "itemId": item, "delta": text}
    return {"do": "emit", "times": times, "lines": [{"method": "item/commandExecution/outputDelta", "params": params}]}


def message(text: str, item: str = "msg_1") -> Json:
    """An `agentMessage` item."""
    return {"type": "agentMessage", "id": item, "text": text, "phase": None}


def command(item: str, shell: str, status: str = "inProgress", **fields: Any) -> Json:
    """A `commandExecution` item."""
    return {
        "type": "commandExecution",
        "id": item,
        "command": f"/bin/bash -lc '{shell}'",
        "cwd": "$CWD",
        "processId": "101",
        "source": "unifiedExecStartup",
        "status": status,
        "commandActions": [{"type": "unknown", "command": shell}],
        "aggregatedOutput": None,
        "exitCode": None,
        "durationMs": None,
        **fields,
    }


def ask_command(item: str, shell: str, decisions: Sequence[Any] | None = None, **fields: Any) -> Step:
    """Ask whether a command may run; `wait("answer")` waits for what comes."""
    params: Json = {
        "kind": "command",
        "threadId": "$T",
        "turnId": "$U",
        "itemId": item,
        "command": f"/bin/bash -lc '{shell}'",
        "cwd": "$CWD",
        "commandActions": [{"type": "unknown", "command": shell}],
        "reason": None,
        **({} if decisions is None else {"availableDecisions": list(decisions)}),
        **fields,
    }
    return request("item/commandExecution/requestApproval", **params)


def request(method: str, **params: Any) -> Step:
    """Send a request of the server's, numbered from 0 a process."""
    return {"do": "request", "method": method, "params": params}


def resolved() -> Step:
    """Take the last request back: `serverRequest/resolved`."""
    return {"do": "resolved"}


def notify(method: str, **params: Any) -> Step:
    """Send a notification."""
    return emit({"method": method, "params": params})


def emit(*lines: Json) -> Step:
    """Write these lines."""
    return {"do": "emit", "times": 1, "lines": list(lines)}


def raw(data: bytes) -> Step:
    """Write these bytes to stdout as they are."""
    return {"do": "raw", "data": base64.b64encode(data).decode()}


def stderr(text: str, times: int = 1) -> Step:
    """Write a text to stderr, so many times."""
    return {"do": "stderr", "text": text, "times": times}


def gate(name: str) -> Step:
    """Wait until the test calls `open` with this name."""
    return {"do": "gate", "name": name}


def done(status: str = "completed", **error: Any) -> Step:
    """The end of the turn; `error` are the fields of its `TurnError`: `message`, `codexErrorInfo`."""
    return {"do": "done", "status": status, "error": error or None}


def spawn(*, stubborn: bool = False) -> Step:
    """Start a child that starts a grandchild `sleep 999`; the child ignores SIGTERM if `stubborn`. Pids are logged."""
    return {"do": "spawn", "stubborn": stubborn}


def leave(code: int = 0) -> Step:
    """Exit with this status."""
    return {"do": "leave", "code": code}


def die(name: str = "SIGKILL") -> Step:
    """Be killed by this signal."""
    return {"do": "die", "signal": name}


# --- the handle ------------------------------------------------------------------------------------------------------


class FakeCodex:
    """The fake's folder, seen from the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fake-codex"
        self.home = self.folder / "codex-home"
        self._script: Json = {"turns": [], "begin": [], "replies": {}, "options": {}}
        for part in (self.home, self.folder / "gates", self.folder / "home"):
            part.mkdir(parents=True, exist_ok=True)
        (self.home / "auth.json").write_text('{"OPENAI_API_KEY": "sk-test-fake"}')
        self.program = self.folder / "codex"
        self.program.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path[0] = {str(Path(__file__).parent)!r}\n"
            "from fake_codex import main\nmain()\n"
        )
        self.program.chmod(0o755)
        self._save()

    @property
    def env(self) -> dict[str, str]:
        """What to run the bridge or the backend with."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder / "home"),
            "CODEX_HOME": str(self.home),
            "CODEX_PATH": str(self.program),
            FOLDER_VARIABLE: str(self.folder),
        }

    def plays(self, *turns: Sequence[Step]) -> None:
        """Give the steps of the turns, in the order in which they start, over all threads."""
        self._script["turns"] = [list(steps) for steps in turns]
        self._save()

    def begins(self, *steps: Step, processes: int | None = None) -> None:
        """Give the steps each process plays before it reads anything; only the first `processes` of them if given."""
        self._script["begin"] = list(steps)
        self._script["processes"] = processes
        self._save()

    def replies(self, method: str, *replies: Json) -> None:
        """Answer this method otherwise: `{"result": ...}`, `{"error": {...}}`, `{}` for never, one reply a request.

        The last one stays. `{"usual": True}` is the usual answer; `{"gate": "name"}` beside any of them makes it
        wait for the test.
        """
        self._script["replies"][method] = list(replies)
        self._save()

    def titles(self, title: str | None) -> None:
        """What an ephemeral thread with an output schema says; None: its turn fails."""
        self._script["options"]["title"] = title
        self._save()

    def tells_early(self, method: str, **params: Any) -> None:
        """Tell this of each new thread before `thread/start` is answered."""
        self._script["options"]["early"] = {"method": method, "params": params}
        self._save()

    def stores(self, *threads: Json) -> None:
        """Put threads into the store: `id`, and any other field of `Thread`."""
        (self.folder / "threads.json").write_text(json.dumps([_thread(**thread) for thread in threads]))

    def threads(self) -> list[Json]:
        """The threads in the store."""
        path = self.folder / "threads.json"
        return json.loads(path.read_text()) if path.exists() else []

    def open(self, name: str) -> None:
        """Let the fakes that wait at this gate go on."""
        (self.folder / "gates" / name).touch()

    def log(self) -> list[Json]:
        """Everything logged so far, in order."""
        try:
            lines = (self.folder / "log").read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]

    def starts(self) -> list[Json]:
        """One entry for each process: `pid`, `argv`, `env`, `cwd`."""
        return [entry for entry in self.log() if entry["what"] == "start"]

    def children(self) -> list[int]:
        """Pids of all that `spawn` started."""
        return [pid for entry in self.log() if entry["what"] == "spawned" for pid in entry["pids"]]

    def received(self) -> list[Json]:
        """The messages received, in order."""
        return [entry["line"] for entry in self.log() if entry["what"] == "line"]

    def requests(self, method: str) -> list[Json]:
        """The params of the requests of one method."""
        return [line["params"] for line in self.received() if line.get("method") == method]

    def unloaded(self) -> list[str]:
        """The threads that were unloaded once nobody followed them, in order."""
        return [entry["thread"] for entry in self.log() if entry["what"] == "unloaded"]

    def answers(self) -> list[Json]:
        """The answers to the fake's own requests."""
        return [line for line in self.received() if "method" not in line]

    def prompts(self) -> list[str]:
        """The texts of the turns started, but for those that ask for a title."""
        turns = [params for params in self.requests("turn/start") if "outputSchema" not in params]
        return ["".join(block.get("text", "") for block in params["input"]) for params in turns]

    def _save(self) -> None:
        (self.folder / "script.json").write_text(json.dumps(self._script))


def _thread(**fields: Any) -> Json:
    now = int(time.time())
    return {
        "sessionId": fields.get("id"),
        "parentThreadId": None,
        "preview": "",
        "ephemeral": False,
        "createdAt": now,
        "updatedAt": now,
        "recencyAt": now,
        "status": {"type": "notLoaded"},
        "path": None,
        "cwd": "/",
        "source": "vscode",
        "threadSource": None,
        "name": None,
        "turns": [],
        "items": [],
        "archived": False,
        **fields,
    }


# --- the program -----------------------------------------------------------------------------------------------------


class _Turn:
    """A turn that plays its steps in a thread of its own."""

    def __init__(self, fake: _Fake, thread: Json, index: int, steps: list[Step]) -> None:
        self.fake = fake
        self.thread = thread
        self.index = index
        self.steps = steps
        self.id = f"01900000-0000-7000-8000-{index:012x}"
        self.arrived: dict[str, queue.Queue[Json]] = {"interrupt": queue.Queue(), "answer": queue.Queue()}
        self.began = False
        self.unnamed = False
        self.over = False
        self.last_request = 0

    @property
    def heeds(self) -> bool:
        """Whether the script itself deals with an interrupt."""
        return any(step["do"] == "wait" and step["kind"] == "interrupt" for step in self.steps)

    def play(self) -> None:
        for step in self.steps:
            if self.over:
                return
            self.fake.do(step, self)
        self.end("completed", None)

    def end(self, status: str, error: Json | None) -> None:
        with self.fake.lock:
            if self.over:
                return
            self.over = True
            self.fake.active.pop(self.thread["id"], None)
        turn: Json = {"id": self.id, "items": [], "status": status, "error": error}
        self.fake.send({"method": "turn/completed", "params": {"threadId": self.thread["id"], "turn": turn}})


class _Fake:
    """One process."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.active: dict[str, _Turn] = {}
        self.turns: list[_Turn] = []
        self.loaded: dict[str, Json] = {}
        self.made = 0
        self.unloads = "thread_unload_delay_secs=0" in argv
        self.asked: dict[int, _Turn] = {}
        self.next_request = 0
        self.script: Json = json.loads((folder / "script.json").read_text())
        past = (folder / "log").read_bytes() if (folder / "log").exists() else b""
        self.number = past.count(b'"what": "start"')
        self.played = past.count(b'"what": "turn"')
        self.log(what="start", pid=os.getpid(), argv=argv, env=dict(os.environ), cwd=os.getcwd())

    @property
    def index(self) -> Path:
        """The list of renames."""
        return Path(os.environ["CODEX_HOME"]) / "session_index.jsonl"

    def log(self, **entry: Any) -> None:
        descriptor = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, json.dumps(entry).encode() + b"\n")
        os.close(descriptor)

    def run(self) -> None:
        processes = self.script.get("processes")
        if processes is None or self.number < processes:
            for step in self.script["begin"]:
                self.do(step, None)
        for line in sys.stdin.buffer:
            message = json.loads(line.decode())  # invalid UTF-8 ends the process, as it ends the real one
            self.log(what="line", line=message)
            if "method" not in message:
                turn = self.asked.pop(message["id"], None)
                if turn is not None:
                    turn.arrived["answer"].put(message)
            elif "id" in message:
                self.script = json.loads((self.folder / "script.json").read_text())
                self.serve(message["id"], message["method"], message["params"])

    # -- writing --------------------------------------------------------------------------------

    def send(self, message: Json) -> None:
        self.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")

    def write(self, data: bytes) -> None:
        with self.lock:
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                os._exit(0)

    def filled(self, value: object, turn: _Turn | None) -> Any:
        """A copy of what is to be emitted, its placeholders filled."""
        if isinstance(value, dict):
            return {key: self.filled(inner, turn) for key, inner in cast(Json, value).items()}
        if isinstance(value, list):
            return [self.filled(inner, turn) for inner in cast("list[object]", value)]
        if not isinstance(value, str) or "$" not in value:
            return value
        for other in reversed(self.turns):
            value = value.replace(f"$T{other.index}", other.thread["id"]).replace(f"$U{other.index}", other.id)
        if turn is not None:
            value = value.replace("$T", turn.thread["id"]).replace("$U", turn.id).replace("$CWD", turn.thread["cwd"])
        return value

    # -- steps ----------------------------------------------------------------------------------

    def do(self, step: Step, turn: _Turn | None) -> None:
        getattr(self, "do_" + step["do"])(step, turn)

    def do_emit(self, step: Step, turn: _Turn | None) -> None:
        for line in step["lines"]:
            message = self.filled(line, turn)
            for _ in range(step["times"]):
                self.send(message)

    def do_raw(self, step: Step, turn: _Turn | None) -> None:
        self.write(base64.b64decode(step["data"]))

    def do_stderr(self, step: Step, turn: _Turn | None) -> None:
        for _ in range(step["times"]):
            sys.stderr.write(step["text"])
        sys.stderr.flush()

    def do_gate(self, step: Step, turn: _Turn | None) -> None:
        gate_file = self.folder / "gates" / step["name"]
        while not gate_file.exists() and not (turn is not None and turn.over):
            time.sleep(0.005)

    do_hold = do_unstarted = do_gate

    def do_wait(self, step: Step, turn: _Turn | None) -> None:
        assert turn is not None
        while not turn.over:
            try:
                turn.arrived[step["kind"]].get(timeout=0.05)
                return
            except queue.Empty:
                continue

    def do_request(self, step: Step, turn: _Turn | None) -> None:
        assert turn is not None
        with self.lock:
            request_id, self.next_request = self.next_request, self.next_request + 1
            self.asked[request_id] = turn
            turn.last_request = request_id
        params = self.filled(step["params"], turn)
        self.send({"method": step["method"], "id": request_id, "params": params})

    def do_resolved(self, step: Step, turn: _Turn | None) -> None:
        assert turn is not None
        params = {"threadId": turn.thread["id"], "requestId": turn.last_request}
        self.send({"method": "serverRequest/resolved", "params": params})

    def do_done(self, step: Step, turn: _Turn | None) -> None:
        assert turn is not None
        turn.end(step["status"], step["error"])

    def do_spawn(self, step: Step, turn: _Turn | None) -> None:
        trap = "trap '' TERM; " if step["stubborn"] else ""
        script = f"{trap}sleep 999 & echo $!; wait"
        child = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert child.stdout is not None
        self.log(what="spawned", pids=[child.pid, int(child.stdout.readline())])

    def do_leave(self, step: Step, turn: _Turn | None) -> None:
        os._exit(step["code"])

    def do_die(self, step: Step, turn: _Turn | None) -> None:
        os.kill(os.getpid(), getattr(signal, step["signal"]))

    # -- requests -------------------------------------------------------------------------------

    def serve(self, request_id: int, method: str, params: Json) -> None:
        replies = self.script["replies"].get(method)
        if replies:
            used = sum(1 for entry in self._lines() if entry.get("method") == method) - 1
            reply = replies[min(used, len(replies) - 1)]
            threading.Thread(target=self.reply, args=(request_id, method, params, reply), daemon=True).start()
        else:
            self.usual(request_id, method, params)

    def _lines(self) -> list[Json]:
        entries = [json.loads(line) for line in (self.folder / "log").read_bytes().split(b"\n")[:-1]]
        return [entry["line"] for entry in entries if entry["what"] == "line"]

    def reply(self, request_id: int, method: str, params: Json, reply: Json) -> None:
        if "gate" in reply:
            self.do_gate({"name": reply["gate"]}, None)
        if "usual" in reply:
            self.usual(request_id, method, params)
        elif "result" in reply or "error" in reply:
            self.send({"id": request_id, **{key: reply[key] for key in ("result", "error") if key in reply}})

    def usual(self, request_id: int, method: str, params: Json) -> None:
        handler = _METHODS.get(method)
        if handler is None:
            self.fail(request_id, f"Invalid request: unknown variant `{method}`")
            return
        with self.lock:
            handler(self, request_id, params)

    def answer(self, request_id: int, result: Json) -> None:
        self.send({"id": request_id, "result": result})

    def fail(self, request_id: int, message: str) -> None:
        self.send({"id": request_id, "error": {"code": -32600, "message": message}})

    def stored(self) -> list[Json]:
        path = self.folder / "threads.json"
        return json.loads(path.read_text()) if path.exists() else []

    def save(self, thread: Json) -> None:
        others = [other for other in self.stored() if other["id"] != thread["id"]]
        (self.folder / "threads.json").write_text(json.dumps([*others, thread]))

    def thread(self, request_id: int, params: Json, *, archived: bool = True) -> Json | None:
        """The thread a request is about; None after an error was sent."""
        thread_id = params["threadId"]
        found = next((t for t in self.stored() if t["id"] == thread_id), None) or self.loaded.get(thread_id)
        if found is None or (found["archived"] and not archived):
            self.fail(request_id, f"no rollout found for thread id {thread_id}")
            return None
        return found

    def initialize(self, request_id: int, params: Json) -> None:
        home = os.environ.get("CODEX_HOME", "")
        self.answer(request_id, {"userAgent": "fake/0.163.0", "codexHome": home, "platformFamily": "unix"})

    def account(self, request_id: int, params: Json) -> None:
        self.answer(request_id, {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True})

    def auth(self, request_id: int, params: Json) -> None:
        self.answer(request_id, {"authMethod": "apikey", "authToken": None, "requiresOpenaiAuth": True})

    def start(self, request_id: int, params: Json) -> None:
        self.made += 1
        number = self.made + 4096 * self.number
        thread_id = f"01900000-1111-7000-8000-{number:012x}"
        ephemeral = bool(params.get("ephemeral"))
        thread = _thread(id=thread_id, cwd=params["cwd"], ephemeral=ephemeral, threadSource=params.get("threadSource"))
        self.loaded[thread_id] = thread
        if (early := self.script["options"].get("early")) is not None:
            self.send({"method": early["method"], "params": {"threadId": thread_id, **early["params"]}})
        self.answer(request_id, {"thread": thread, "model": "gpt-5.5"})

    def resume(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params)
        if thread is None:
            return
        if thread["archived"]:
            self.fail(request_id, f"session {thread['id']} is archived. Run `codex unarchive` to unarchive it first.")
            return
        self.loaded[thread["id"]] = thread
        self.answer(request_id, {"thread": thread, "model": "gpt-5.5"})

    def read(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params)
        if thread is not None:
            self.answer(
                request_id, {"thread": {**thread, "path": "/archived_sessions/x" if thread["archived"] else None}}
            )

    def rows(self, request_id: int, params: Json) -> None:
        wanted = params.get("cwd")
        cwds = [wanted] if isinstance(wanted, str) else wanted
        rows = [t for t in self.stored() if not t["archived"] and (cwds is None or t["cwd"] in cwds)]
        rows.sort(key=lambda t: (t["recencyAt"], t["id"]), reverse=True)
        first = int(params["cursor"]) if str(params.get("cursor", "")).isdigit() else 0
        last = first + params.get("limit", 25)
        following = str(last) if last < len(rows) else None
        self.answer(request_id, {"data": rows[first:last], "nextCursor": following})

    def items(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params)
        if thread is not None:
            self.answer(request_id, {"data": [{"item": item} for item in thread["items"]], "nextCursor": None})

    def name(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params, archived=False)
        if thread is None:
            return
        thread["name"] = params["name"].strip()
        self.save(thread)
        with self.index.open("a", encoding="utf-8") as index:
            index.write(json.dumps({"id": thread["id"], "thread_name": thread["name"]}, ensure_ascii=False) + "\n")
        self.answer(request_id, {})
        told = {"threadId": thread["id"], "threadName": thread["name"]}
        self.send({"method": "thread/name/updated", "params": told})

    def delete(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params)
        if thread is None:
            return
        self.loaded.pop(thread["id"], None)
        remaining = [other for other in self.stored() if other["id"] != thread["id"]]
        (self.folder / "threads.json").write_text(json.dumps(remaining))
        self._forget_names(thread["id"])
        self.answer(request_id, {})
        self.send({"method": "thread/deleted", "params": {"threadId": thread["id"]}})

    def _forget_names(self, thread_id: str) -> None:
        """Write the list of renames anew, as another file."""
        if self.index.exists():
            lines = self.index.read_text(encoding="utf-8").splitlines(keepends=True)
            fresh = self.index.with_suffix(".tmp")
            fresh.write_text("".join(line for line in lines if thread_id not in line), encoding="utf-8")
            fresh.replace(self.index)

    def archive(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params, archived=False)
        if thread is None:
            return
        turn = self.active.get(thread["id"])
        if turn is not None:
            turn.end("interrupted", None)
        self.loaded.pop(thread["id"], None)
        self.save({**thread, "archived": True})
        self.answer(request_id, {})
        self.send({"method": "thread/archived", "params": {"threadId": thread["id"]}})

    def unarchive(self, request_id: int, params: Json) -> None:
        thread = self.thread(request_id, params)
        if thread is None:
            return
        if not thread["archived"]:
            self.fail(request_id, f"no archived rollout found for thread id {thread['id']}")
            return
        self.save({**thread, "archived": False})
        self.answer(request_id, {"thread": {**thread, "archived": False}})
        self.send({"method": "thread/unarchived", "params": {"threadId": thread["id"]}})

    def loaded_ids(self, request_id: int, params: Json) -> None:
        self.answer(request_id, {"data": list(self.loaded)[: params["limit"]], "nextCursor": None})

    def unsubscribe(self, request_id: int, params: Json) -> None:
        thread_id = params["threadId"]
        if thread_id not in self.loaded:
            self.answer(request_id, {"status": "notLoaded"})
            return
        self.answer(request_id, {"status": "unsubscribed"})
        if self.unloads:
            del self.loaded[thread_id]
            self.log(what="unloaded", thread=thread_id)
            self.send({"method": "thread/closed", "params": {"threadId": thread_id}})

    def terminals(self, request_id: int, params: Json) -> None:
        self.answer(request_id, {"data": [], "nextCursor": None})

    def nothing(self, request_id: int, params: Json) -> None:
        self.answer(request_id, {})

    def turn_start(self, request_id: int, params: Json, *, unnamed: bool = False) -> None:
        thread = self.loaded.get(params["threadId"])
        if thread is None:
            self.fail(request_id, f"thread not found: {params['threadId']}")
            return
        running = self.active.get(thread["id"])
        if running is not None:  # the words are added to the turn that runs
            self.answer(request_id, {"turn": {"id": running.id, "items": [], "status": "inProgress", "error": None}})
            return
        if "outputSchema" in params:
            turn = _Turn(self, thread, 0xFFFF + len(self.turns), self._title_steps())
        else:
            index = self.played + len(self.turns)
            scripts = self.script["turns"]
            steps = scripts[index] if index < len(scripts) else [delta("ok"), completed(message("ok")), done()]
            turn = _Turn(self, thread, index, steps)
            self.turns.append(turn)
            self.log(what="turn", thread=thread["id"])
            self._remember(thread, params.get("input", []))
        turn.unnamed = unnamed
        self.active[thread["id"]] = turn
        threading.Thread(target=self._play, args=(request_id, turn), daemon=True).start()

    def compact(self, request_id: int, params: Json) -> None:
        self.turn_start(request_id, params, unnamed=True)

    def _title_steps(self) -> list[Step]:
        title = self.script["options"].get("title", "Generated title")
        if title is None:
            return [done("failed", message="no title today")]
        return [completed(message(json.dumps({"title": title}))), done()]

    def _remember(self, thread: Json, given: list[Json]) -> None:
        text = "".join(block.get("text", "") for block in given)
        thread["preview"] = thread["preview"] or text
        thread["recencyAt"] = thread["updatedAt"] = int(time.time())
        item = {"type": "userMessage", "id": f"user_{len(thread['items'])}", "content": given}
        thread["items"].append(item)
        self.save(thread)

    def _play(self, request_id: int, turn: _Turn) -> None:
        steps = turn.steps
        first = steps[0]["do"] if steps else ""
        if first == "hold":
            self.do(steps[0], turn)
        told: Json = {"id": turn.id, "items": [], "status": "inProgress", "error": None}
        self.answer(request_id, {} if turn.unnamed else {"turn": told})
        if first == "unstarted":
            self.do(steps[0], turn)
        turn.began = True
        self.send({"method": "turn/started", "params": {"threadId": turn.thread["id"], "turn": told}})
        turn.play()

    def interrupt(self, request_id: int, params: Json) -> None:
        turn = self.active.get(params["threadId"])
        if turn is None or not turn.began:
            self.fail(request_id, "no active turn to interrupt")
            return
        if turn.id != params["turnId"]:
            self.fail(request_id, f"expected active turn id {params['turnId']} but found {turn.id}")
            return
        self.answer(request_id, {})
        turn.arrived["interrupt"].put(params)
        if not turn.heeds:
            turn.end("interrupted", None)


_METHODS: dict[str, Callable[[_Fake, int, Json], None]] = {
    "initialize": _Fake.initialize,
    "account/read": _Fake.account,
    "getAuthStatus": _Fake.auth,
    "thread/start": _Fake.start,
    "thread/resume": _Fake.resume,
    "thread/read": _Fake.read,
    "thread/list": _Fake.rows,
    "thread/items/list": _Fake.items,
    "thread/name/set": _Fake.name,
    "thread/delete": _Fake.delete,
    "thread/archive": _Fake.archive,
    "thread/unarchive": _Fake.unarchive,
    "thread/loaded/list": _Fake.loaded_ids,
    "thread/unsubscribe": _Fake.unsubscribe,
    "thread/backgroundTerminals/list": _Fake.terminals,
    "thread/backgroundTerminals/terminate": _Fake.nothing,
    "thread/backgroundTerminals/clean": _Fake.nothing,
    "thread/compact/start": _Fake.compact,
    "turn/start": _Fake.turn_start,
    "turn/interrupt": _Fake.interrupt,
}


def main() -> None:
    """Be the CLI: imported by its program, for a module's bytecode is kept, and a script's is made at each start."""
    _Fake(Path(os.environ[FOLDER_VARIABLE]), sys.argv[1:]).run()
