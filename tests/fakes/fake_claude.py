"""A stand-in for the Claude Code CLI that plays a script, and the handle a test holds it by.

As a program it speaks stream-json like the CLI: it answers `initialize`, `interrupt`,
`rename_session` and `generate_session_title`, keeps a transcript, and plays its steps. When the steps
are used up it answers every further user message with "ok". Everything it is started with and
receives goes to a log, one JSON object a line.

In a test:

    fake = FakeClaude(tmp_path)
    fake.plays([wait("user"), say("Hello"), gate("go"), end()], cwd=work)
    ...                                   # run the backend or the bridge with fake.env
    fake.open("go")
    assert fake.users() == ["hi"]

Several lists given for one `cwd` are played by one process after another, the last one by all that follow.
Strings in what is emitted may hold `$S` (session id), `$U` (id of the last user message) and `$CWD`.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Step: TypeAlias = dict[str, Any]
Json: TypeAlias = dict[str, Any]

HOME_VARIABLE = "FAKE_CLAUDE_FOLDER"
"""Where the fake finds its scripts, gates and log."""


# --- steps -----------------------------------------------------------------------------------------------------------


def wait(kind: str, *, hook: str | None = None) -> Step:
    """Wait for the next `user` message, `interrupt`, `answer` (to an `ask`), `rename`, or `eof` of stdin.

    A `hook` holds a user message up until the test calls `open` with its name: till then it is not in the transcript.
    """
    return {"do": "wait", "kind": kind, "hook": hook}


def say(text: str, *, message_id: str = "msg_1", streamed: bool = False) -> Step:
    """The agent says a text: one `assistant` line, with the stream events of it before if `streamed`."""
    return {"do": "say", "text": text, "message_id": message_id, "streamed": streamed}


def call(tool_use_id: str, name: str, tool_input: Json, *, message_id: str = "msg_1") -> Step:
    """The agent calls a tool."""
    return {"do": "call", "id": tool_use_id, "name": name, "input": tool_input, "message_id": message_id}


def returns(tool_use_id: str, content: Any, *, is_error: bool = False) -> Step:
    """The result of a tool call."""
    return {"do": "returns", "id": tool_use_id, "content": content, "is_error": is_error}


def ask(request_id: str, tool_use_id: str, command: str, suggestions: Sequence[Json] = ()) -> Step:
    """Ask whether a Bash command may run; `wait("answer")` waits for what comes."""
    return {"do": "ask", "request_id": request_id, "id": tool_use_id, "command": command, "more": list(suggestions)}


def end(text: str = "", **fields: Any) -> Step:
    """The result of the turn; `fields` are added to it or replace its own."""
    return {"do": "end", "text": text, "fields": fields}


def emit(*lines: Json) -> Step:
    """Write these lines."""
    return {"do": "emit", "lines": list(lines)}


def raw(data: bytes) -> Step:
    """Write these bytes to stdout as they are."""
    return {"do": "raw", "data": base64.b64encode(data).decode()}


def stderr(text: str, times: int = 1) -> Step:
    """Write a text to stderr, so many times."""
    return {"do": "stderr", "text": text, "times": times}


def record(*records: Json) -> Step:
    """Append these records to the transcript."""
    return {"do": "record", "records": list(records)}


def append(data: bytes) -> Step:
    """Append these bytes to the transcript as they are."""
    return {"do": "append", "data": base64.b64encode(data).decode()}


def flood(times: int, size: int) -> Step:
    """So many tool calls, each with an input of `size` characters that begins with its number."""
    return {"do": "flood", "times": times, "size": size}


def gate(name: str) -> Step:
    """Wait until the test calls `open` with this name."""
    return {"do": "gate", "name": name}


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


class FakeClaude:
    """The fake's folder, seen from the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fake-claude"
        self.config = self.folder / "config"
        self._runs: dict[str, list[Json]] = {}
        for part in (self.config, self.folder / "gates", self.folder / "home"):
            part.mkdir(parents=True, exist_ok=True)
        self.program = self.folder / "claude"
        self.program.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path[0] = {str(Path(__file__).parent)!r}\n"
            "from fake_claude import main\nmain()\n"
        )
        self.program.chmod(0o755)
        self._save()

    @property
    def env(self) -> dict[str, str]:
        """What to run the bridge or the backend with."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder / "home"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_EXECUTABLE": str(self.program),
            "ANTHROPIC_API_KEY": "sk-ant-test-fake",
            HOME_VARIABLE: str(self.folder),
        }

    def plays(self, *scripts: Sequence[Step], cwd: Path | None = None, **options: Any) -> None:
        """Give the scripts for processes in `cwd`, or for all others.

        Options: `late` (reads and says nothing until the test calls `open` with this name), `mute` (never
        answers `initialize`), `handshake_delay` (seconds), `late_commands` (told right behind the
        handshake), `deaf` (never answers `interrupt`), `still_queued` (names the last message in the answer to it),
        `title` (what `generate_session_title` gives), `no_transcript` (writes none), `rename_error` (refuses renames
        with this text), `rename_as` (stores this title instead of any other), `forgets` (takes so many
        renames without storing them), `rename_unanswered` (says nothing to renames), `overtakes` (writes
        this title behind so many renames: `[title, times]`), `stays` (does not exit at the end of its stdin).
        """
        key = str(cwd.resolve()) if cwd is not None else "*"
        self._runs[key] = [{"steps": list(steps), **options} for steps in (scripts or ([],))]
        self._save()

    def flooded(self) -> int:
        """How many calls of a `flood` were written."""
        path = self.folder / "flooded"
        return int(path.read_text() or 0) if path.exists() else 0

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
        """One entry for each process: `pid`, `argv`, `env`, `cwd`, `session`."""
        return [entry for entry in self.log() if entry["what"] == "start"]

    def children(self) -> list[int]:
        """Pids of all that `spawn` started."""
        return [pid for entry in self.log() if entry["what"] == "spawned" for pid in entry["pids"]]

    def received(self, session: str | None = None) -> list[Json]:
        """The lines received, of one session or of all."""
        return [e["line"] for e in self.log() if e["what"] == "line" and session in (None, e["session"])]

    def users(self, session: str | None = None) -> list[str]:
        """The texts of the user messages received."""
        messages = [line["message"] for line in self.received(session) if line.get("type") == "user"]
        return ["".join(block.get("text", "") for block in message["content"]) for message in messages]

    def requests(self, subtype: str, session: str | None = None) -> list[Json]:
        """The control requests of one kind received."""
        requests = [line["request"] for line in self.received(session) if line.get("type") == "control_request"]
        return [request for request in requests if request["subtype"] == subtype]

    def answers(self, session: str | None = None) -> list[Json]:
        """The `response` objects of the control responses received."""
        return [line["response"] for line in self.received(session) if line.get("type") == "control_response"]

    def transcript(self, session: str) -> Path:
        """The transcript of a session, which is there."""
        return next(iter(self.config.glob(f"projects/*/{session}.jsonl")))

    def titles(self, session: str) -> list[str]:
        """The custom titles in a transcript, in order."""
        lines = self.transcript(session).read_text().splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{")]
        return [entry["customTitle"] for entry in records if entry["type"] == "custom-title"]

    def _save(self) -> None:
        (self.folder / "script.json").write_text(json.dumps(self._runs))


# --- the program -----------------------------------------------------------------------------------------------------


class _Fake:
    """One process."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder = folder
        self.cwd = os.path.realpath(os.getcwd())
        options = dict(re.findall(r"--(session-id|resume)=(\S+)", " ".join(argv)))
        self.resumed = "resume" in options
        self.session = options.get("resume") or options.get("session-id") or str(uuid.uuid4())
        config = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(os.environ["HOME"]) / ".claude")
        slug = re.sub(r"[^a-zA-Z0-9]", "-", self.cwd)
        self.transcript = config / "projects" / slug / f"{self.session}.jsonl"
        self.user_uuid = ""
        self.title: str | None = None
        self.renames = 0
        self.arrived: dict[str, queue.Queue[Json]] = {}
        self.write_lock = threading.Lock()
        before = [e for e in self._entries() if e["what"] == "start" and e["cwd"] == self.cwd]
        self._log(what="start", pid=os.getpid(), argv=argv, env=dict(os.environ), cwd=self.cwd)
        scripts = json.loads((folder / "script.json").read_text())
        empty: list[Json] = [{"steps": []}]
        runs: list[Json] = scripts.get(self.cwd) or scripts.get("*") or empty
        self.script: Json = runs[min(len(before), len(runs) - 1)]

    def run(self) -> None:
        if "CLAUDECODE" in os.environ:
            self._refuse("Claude Code cannot be launched inside another Claude Code session.")
        if self.resumed and not self.transcript.exists():
            self._refuse(f"No conversation found with session ID: {self.session}")
        if not self.resumed and self.transcript.exists():
            self._refuse(f"Error: Session ID {self.session} is already in use.")
        if "late" in self.script:
            self._do_gate({"name": self.script["late"]})
        threading.Thread(target=self._listen, daemon=True).start()
        for step in self.script["steps"]:
            self._do(step)
        while True:
            self._do(wait("user"))
            self._do(say("ok"))
            self._do(end("ok"))

    def _refuse(self, words: str) -> None:
        sys.stderr.write(words + "\n")
        sys.stderr.flush()
        os._exit(1)

    def _entries(self) -> list[Json]:
        path = self.folder / "log"
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []

    def _log(self, **entry: Any) -> None:
        descriptor = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, json.dumps({**entry, "session": self.session}).encode() + b"\n")
        os.close(descriptor)

    def _listen(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            self._log(what="line", line=message)
            kind = message.get("type")
            if kind == "user":
                self._came("user", message)
            elif kind == "control_response":
                self._came("answer", message)
            elif kind == "control_request":
                self._serve(message["request_id"], message["request"])
        self._came("eof", {})
        if not self.script.get("stays"):
            os._exit(0)

    def _came(self, kind: str, message: Json) -> None:
        self.arrived.setdefault(kind, queue.Queue()).put(message)

    def _serve(self, request_id: str, request: Json) -> None:
        subtype = request["subtype"]
        if subtype == "initialize":
            if not self.script.get("mute"):
                time.sleep(self.script.get("handshake_delay", 0))
                told: list[Json] = [{"name": "compact", "description": "Free up context"}]
                late: list[Json] = self.script.get("late_commands", [])
                changed: Json = {"type": "system", "subtype": "commands_changed", "commands": [*told, *late]}
                self._answer(request_id, {"commands": told}, *([changed] if late else []))
        elif subtype == "interrupt":
            if not self.script.get("deaf"):
                queued = [self.user_uuid] if self.script.get("still_queued") else []
                self._answer(request_id, {"still_queued": queued})
            self._came("interrupt", request)
        elif subtype == "rename_session":
            self._rename(request_id, request["title"])
        elif subtype == "generate_session_title":
            title = self.script.get("title")
            if title is not None and self.transcript.exists():
                self._record({"type": "ai-title", "aiTitle": title, "sessionId": self.session})
            self._answer(request_id, {"title": title})
        else:
            self._answer(request_id, {})

    def _rename(self, request_id: str, title: str) -> None:
        if self.script.get("rename_unanswered"):
            self._came("rename", {})
            return
        error = self.script.get("rename_error")
        if error is not None:
            self._write(
                {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}
            )
            return
        title = self.script.get("rename_as", title)
        self.renames += 1
        stores = self.renames > self.script.get("forgets", 0)
        self.title = title if stores else self.title
        self._write({"type": "system", "subtype": "session_title_changed", "title": title, "session_id": self.session})
        if stores and self.transcript.exists():
            self._record({"type": "custom-title", "customTitle": title, "sessionId": self.session})
            older, times = self.script.get("overtakes", ("", 0))
            if title != older and times > 0:
                self.script["overtakes"] = (older, times - 1)
                self._record({"type": "custom-title", "customTitle": older, "sessionId": self.session})
        self._answer(request_id, None)
        self._came("rename", {})

    def _answer(self, request_id: str, response: Json | None, *behind: Json) -> None:
        body: Json = {"subtype": "success", "request_id": request_id}
        if response is not None:
            body["response"] = response
        self._write({"type": "control_response", "response": body}, *behind)

    def _write(self, *messages: Any) -> None:
        lines = [self._filled(json.dumps(message, ensure_ascii=False)) + "\n" for message in messages]
        self._bytes("".join(lines).encode("utf-8", "surrogatepass"))

    def _bytes(self, data: bytes) -> None:
        with self.write_lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def _filled(self, text: str) -> str:
        return text.replace("$S", self.session).replace("$U", self.user_uuid).replace("$CWD", self.cwd)

    def _record(self, *records: Json) -> None:
        lines = [self._filled(json.dumps(entry, ensure_ascii=False)) for entry in records]
        self._append("".join(line + "\n" for line in lines).encode())

    def _append(self, data: bytes) -> None:
        if not self.script.get("no_transcript"):
            self.transcript.parent.mkdir(parents=True, exist_ok=True)
            with self.transcript.open("ab", buffering=0) as file:
                file.write(data)

    def _message(self, kind: str, message: Json, **more: Any) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(now)) + f"{int(now % 1 * 1000):03d}Z"
        common = {"uuid": str(uuid.uuid4()), "timestamp": stamp, "sessionId": self.session, "cwd": self.cwd}
        self._record({"type": kind, "isSidechain": False, "message": message, **common, **more})

    def _do(self, step: Step) -> None:
        action: Callable[[Step], None] = getattr(self, f"_do_{step['do']}")
        action(step)

    def _do_wait(self, step: Step) -> None:
        message = self.arrived.setdefault(step["kind"], queue.Queue()).get()
        if step["kind"] == "user":
            self.user_uuid = message.get("uuid", "")
            if step["hook"] is not None:
                self._do_gate({"name": step["hook"]})
            new = not self.transcript.exists()
            self._message("user", message["message"], uuid=self.user_uuid)
            if new and self.title is not None:
                self._record({"type": "custom-title", "customTitle": self.title, "sessionId": self.session})

    def _do_say(self, step: Step) -> None:
        message_id, text = step["message_id"], step["text"]
        common = {"session_id": self.session, "parent_tool_use_id": None}
        if step["streamed"]:
            events = [
                {"type": "message_start", "message": {"id": message_id}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            ]
            for event in events:
                self._write({"type": "stream_event", "event": event, **common})
        message = {"id": message_id, "role": "assistant", "model": "fake", "content": [{"type": "text", "text": text}]}
        self._message("assistant", message)
        self._write({"type": "assistant", "message": message, **common})

    def _do_call(self, step: Step) -> None:
        block = {"type": "tool_use", "id": step["id"], "name": step["name"], "input": step["input"]}
        message = {"id": step["message_id"], "role": "assistant", "model": "fake", "content": [block]}
        self._message("assistant", message)
        self._write({"type": "assistant", "message": message, "session_id": self.session, "parent_tool_use_id": None})

    def _do_flood(self, step: Step) -> None:
        for number in range(step["times"]):
            tool_input = {"file_path": "x", "content": f"{number} ".ljust(step["size"], "x")}
            block = {"type": "tool_use", "id": f"flood-{number}", "name": "Write", "input": tool_input}
            message = {"id": f"m{number}", "role": "assistant", "model": "fake", "content": [block]}
            self._write({"type": "assistant", "message": message, "session_id": "$S", "parent_tool_use_id": None})
            Path(os.environ[HOME_VARIABLE], "flooded").write_text(str(number + 1))

    def _do_returns(self, step: Step) -> None:
        block = {
            "type": "tool_result",
            "tool_use_id": step["id"],
            "content": step["content"],
            "is_error": step["is_error"],
        }
        message = {"role": "user", "content": [block]}
        self._message("user", message)
        self._write({"type": "user", "message": message, "session_id": self.session, "parent_tool_use_id": None})

    def _do_ask(self, step: Step) -> None:
        request = {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": step["command"]},
            "permission_suggestions": step["more"],
            "tool_use_id": step["id"],
        }
        self._write({"type": "control_request", "request_id": step["request_id"], "request": request})

    def _do_end(self, step: Step) -> None:
        result = {"type": "result", "subtype": "success", "is_error": False, "session_id": "$S", "result": step["text"]}
        self._write({**result, "user_message_uuids": [self.user_uuid], **step["fields"]})

    def _do_emit(self, step: Step) -> None:
        for line in step["lines"]:
            self._write(line)

    def _do_raw(self, step: Step) -> None:
        self._bytes(base64.b64decode(step["data"]))

    def _do_stderr(self, step: Step) -> None:
        for _ in range(step["times"]):
            sys.stderr.write(step["text"])
        sys.stderr.flush()

    def _do_record(self, step: Step) -> None:
        self._record(*step["records"])

    def _do_append(self, step: Step) -> None:
        self._append(base64.b64decode(step["data"]))

    def _do_gate(self, step: Step) -> None:
        while not (self.folder / "gates" / step["name"]).exists():
            time.sleep(0.005)

    def _do_spawn(self, step: Step) -> None:
        trap = "trap '' TERM; " if step["stubborn"] else ""
        child = subprocess.Popen(
            ["/bin/sh", "-c", f"{trap}sleep 999 & echo $!; wait; {trap and 'sleep 999'}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdout is not None
        self._log(what="spawned", pids=[child.pid, int(child.stdout.readline())])

    def _do_leave(self, step: Step) -> None:
        sys.stderr.flush()
        os._exit(step["code"])

    def _do_die(self, step: Step) -> None:
        os.kill(os.getpid(), getattr(signal, step["signal"]))
        signal.pause()


def main() -> None:
    """Be the CLI: imported by its program, for a module's bytecode is kept, and a script's is made at each start."""
    _Fake(Path(os.environ[HOME_VARIABLE]), sys.argv[1:]).run()
