"""The script language of the model: a prompt's text -> steps -> actions. Pure.

A prompt is cut at `;;` into steps; each answers one model request of the turn. A step with tool
calls is followed by the next step when their results come back; a step without ends the turn.
What is not one of these words is prose and means nothing:

    SAY[n]          stream n words: word0 word1 ...       TEXT<<...>>     stream exactly this text
    LINES           break the line after each fifth word  REASON[text]    stream text as thinking
    DELAY[ms]       wait before each word of the step     HOLD[seconds]   wait here
    GATE[name]      wait here until a test opens it       FAIL[status]    answer with this HTTP status
    RUN[command]    call the shell tool                   RUNBG[command]  the same, left running
    RUNESC[command] the same, outside the sandbox         TOOL[Name {..}] call any tool, its input in JSON
    STOP[reason]    end with this stop reason             USAGE[tokens]   say that so many tokens went in
    PIECE[{..}]     put this JSON into the answer as it is: a content block of the one API, an output item of the other

Words stream in the order written; tool calls come last in a step, as models do it. FAIL after
streamed text breaks the stream off. Brackets inside brackets are fine as long as they pair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_object

DEFAULT_REPLY = (
    "This is the scripted model that comes with acp-manifold. It has no opinions, only scripts: "
    "a prompt with SAY[20] makes it say twenty words."
)
"""The answer to a prompt without a script."""

CLOSING_REPLY = "Done."
"""The answer when tool results come back and the script has no further step."""


@dataclass(frozen=True, slots=True)
class Say:
    """Stream this many numbered words; numbers go on through the step."""

    count: int


@dataclass(frozen=True, slots=True)
class Text:
    """Stream exactly this text, word by word."""

    text: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Stream this as thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AtGate:
    """Wait until the gate of this name is open."""

    name: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the request with this HTTP status."""

    status: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Put this into the answer as it is: a content block or an output item, as the CLI's API has it."""

    json: JsonObject


@dataclass(frozen=True, slots=True)
class Shell:
    """A call of the CLI's shell tool."""

    command: str
    background: bool = False
    escalated: bool = False
    """Ask to leave the sandbox; only Codex knows this."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A call of any tool."""

    name: str
    input: JsonObject


Call: TypeAlias = Shell | Tool
Action: TypeAlias = Say | Text | Reason | Hold | AtGate | Fail | Piece


@dataclass(frozen=True, slots=True)
class Step:
    """What answers one model request."""

    actions: tuple[Action, ...] = ()
    calls: tuple[Call, ...] = ()
    delay: float = 0.0
    """Seconds before each word."""
    lines: bool = False
    """Whether each fifth numbered word ends its line."""
    stop: str | None = None
    """Why the model stopped, in its API's words; None for the usual reason."""
    tokens: int | None = None
    """Tokens that went in; None for a few."""


_WORD = re.compile(
    r"TEXT<<(?P<text>.*?)>>"
    r"|(?<![A-Za-z])(?P<verb>SAY|DELAY|HOLD|GATE|REASON|RUNBG|RUNESC|RUN|TOOL|FAIL|STOP|USAGE|PIECE)\["
    r"|(?<![A-Za-z])(?P<lines>LINES)(?![A-Za-z])"
    r"|(?P<next>;;)",
    re.DOTALL,
)
_OWN_WORDS = re.compile(r"<(summary|objective)>(.*?)</\1>", re.DOTALL)
_PIECE = re.compile(r"\s*\S+\s*|\s+")


def has_script(prompt: str) -> bool:
    """Whether the text holds a word of the script language that makes the model do something."""
    return any(match["text"] is not None or match["verb"] for match in _WORD.finditer(prompt))


def parse(prompt: str) -> tuple[Step, ...]:
    """The steps of a prompt; one that says `DEFAULT_REPLY` for a prompt without a script."""
    if not has_script(prompt):
        return (Step((Text(DEFAULT_REPLY),)),)
    steps: list[Step] = []
    draft = _Draft()
    position = 0
    while match := _WORD.search(prompt, position):
        position = match.end()
        if match["next"]:
            steps.append(draft.step())
            draft = _Draft()
        elif match["lines"]:
            draft.lines = True
        elif match["text"] is not None:
            draft.actions.append(Text(match["text"]))
        else:
            inside, position = _bracketed(prompt, position)
            _VERBS[match["verb"]](draft, inside)
    steps.append(draft.step())
    return tuple(steps)


def step_after(steps: Sequence[Step], results: int) -> Step:
    """The step that answers a request when so many tool results of this turn have come back."""
    for step in steps:
        if results <= 0 or not step.calls:
            return step
        results -= len(step.calls)
    return Step((Text(CLOSING_REPLY),))


def choose(blocks: Sequence[str]) -> str | None:
    """Which text block of one user message is the prompt.

    CLIs put blocks of their own beside it, in angle brackets, and merge an interrupted prompt
    with the one after it: the last block with a script counts, else the last that is not theirs.
    """
    typed = [block for block in blocks if not block.lstrip().startswith("<")]
    scripted = [block for block in typed if has_script(block)]
    candidates = scripted or typed or _own_words(blocks)
    return candidates[-1] if candidates else None


def _own_words(blocks: Sequence[str]) -> list[str]:
    """Scripts in what a CLI tells the model when it begins a turn itself.

    The summary of a background task that has ended (Claude Code 2.1.332) has the description its call was given;
    the goal that is gone on with (codex-cli 0.163.0) has its objective.
    """
    return [said for block in blocks for _, said in _OWN_WORDS.findall(block) if has_script(said)]


def pieces(text: str) -> list[str]:
    """A text cut into words with the space around them; together they are the text."""
    return _PIECE.findall(text)


def numbered(first: int, count: int, *, lines: bool) -> list[str]:
    """`count` numbered words from `first` on, each with the space or line break behind it."""
    return [f"word{n}" + ("\n" if lines and n % 5 == 4 else " ") for n in range(first, first + count)]


class _Draft:
    """A step while its words are being read."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self.calls: list[Call] = []
        self.delay = 0.0
        self.lines = False
        self.stop: str | None = None
        self.tokens: int | None = None

    def step(self) -> Step:
        return Step(tuple(self.actions), tuple(self.calls), self.delay, self.lines, self.stop, self.tokens)


def _bracketed(prompt: str, start: int) -> tuple[str, int]:
    """What stands between the bracket before `start` and its partner, and where to read on."""
    depth = 1
    for index in range(start, len(prompt)):
        depth += (prompt[index] == "[") - (prompt[index] == "]")
        if depth == 0:
            return prompt[start:index], index + 1
    return prompt[start:], len(prompt)


def _number(inside: str) -> float:
    try:
        return float(inside)
    except ValueError:
        return 0.0


def _set_delay(draft: _Draft, inside: str) -> None:
    draft.delay = _number(inside) / 1000


def _set_stop(draft: _Draft, inside: str) -> None:
    draft.stop = inside


def _set_tokens(draft: _Draft, inside: str) -> None:
    draft.tokens = int(_number(inside))


def _add_piece(draft: _Draft, inside: str) -> None:
    try:
        value: object = json.loads(inside)
    except ValueError:
        draft.actions.append(Text(f"(not JSON: {inside})"))
        return
    draft.actions.append(Piece(as_object(value)))


def _add_tool(draft: _Draft, inside: str) -> None:
    name, _, raw = inside.partition(" ")
    try:
        value: object = json.loads(raw or "{}")
    except ValueError:
        draft.actions.append(Text(f"(not JSON: {raw})"))
        return
    draft.calls.append(Tool(name, as_object(value)))


_VERBS: dict[str, Callable[[_Draft, str], None]] = {
    "SAY": lambda draft, inside: draft.actions.append(Say(int(_number(inside)))),
    "REASON": lambda draft, inside: draft.actions.append(Reason(inside)),
    "HOLD": lambda draft, inside: draft.actions.append(Hold(_number(inside))),
    "GATE": lambda draft, inside: draft.actions.append(AtGate(inside)),
    "FAIL": lambda draft, inside: draft.actions.append(Fail(int(_number(inside)))),
    "RUN": lambda draft, inside: draft.calls.append(Shell(inside)),
    "RUNBG": lambda draft, inside: draft.calls.append(Shell(inside, background=True)),
    "RUNESC": lambda draft, inside: draft.calls.append(Shell(inside, escalated=True)),
    "DELAY": _set_delay,
    "TOOL": _add_tool,
    "STOP": _set_stop,
    "USAGE": _set_tokens,
    "PIECE": _add_piece,
}
