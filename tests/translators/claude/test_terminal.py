"""The conversation of the interactive program: each word once, whether the hook or the transcript has it first."""

from __future__ import annotations

import itertools

import pytest

from acp_manifold.translators.claude.endings import Failure
from acp_manifold.translators.claude.records import typed_content
from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.claude.typed import typed_parts
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    BlobResource,
    MessageChunk,
    ResourceLink,
    Text,
    TextResource,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    Update,
)

PROMPT = (Text("go"),)


def user(said: object, uuid: str = "u1") -> JsonObject:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": said}}


def agent(block: JsonObject, message_id: str = "m1", stop: str = "end_turn", **more: object) -> JsonObject:
    usage: JsonObject = {"input_tokens": 3, "output_tokens": 2}
    message: JsonObject = {"id": message_id, "model": "x", "content": [block], "usage": usage, "stop_reason": stop}
    return {"type": "assistant", "uuid": f"r-{message_id}", "message": message, **more}


def words(said: str) -> JsonObject:
    return {"type": "text", "text": said}


def shown(index: int, delta: str, name: str = "d1") -> JsonObject:
    return {"hook_event_name": "MessageDisplay", "message_id": name, "index": index, "delta": delta}


def begun() -> TerminalConversation:
    talk = TerminalConversation("/w")
    talk.expect(PROMPT)
    assert talk.recorded(user("go")) == [MessageChunk("user", Text("go"), "u1")]
    return talk


def said(updates: list[Update]) -> str:
    return "".join(
        u.content.text
        for u in updates
        if isinstance(u, MessageChunk) and u.role == "agent" and isinstance(u.content, Text)
    )


PIECES = [("hook", 0), ("hook", 1), ("hook", 2), ("record", 0)]


@pytest.mark.parametrize("order", list(itertools.permutations(PIECES)))
def test_each_word_is_told_once_whatever_comes_first(order: list[tuple[str, int]]) -> None:
    talk = begun()
    lines = ["one\n", "two\n", "three"]
    told: list[Update] = []
    for source, index in order:
        told += (
            talk.displayed(shown(index, lines[index]))
            if source == "hook"
            else talk.recorded(agent(words("one\ntwo\nthree")))
        )
    assert said(told) == "one\ntwo\nthree"


def test_two_texts_with_a_call_between_keep_their_order_and_their_names() -> None:
    talk = begun()
    told = talk.displayed(shown(0, "first\n"))
    told += talk.recorded(agent(words("first\nend"), stop="tool_use"))
    call: JsonObject = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    told += talk.recorded(agent(call, stop="tool_use"))
    assert not talk.answered
    result: JsonObject = {"type": "tool_result", "tool_use_id": "t1", "content": "out"}
    told += talk.recorded(user([result], "u2"))
    told += talk.displayed(shown(0, "second", "d2"))
    told += talk.recorded(agent(words("second"), "m2"))
    assert talk.answered and said(told) == "first\nendsecond"
    names = [u.message_id for u in told if isinstance(u, MessageChunk)]
    assert names == ["d1", "d1", "d2"]
    (begin,) = [u for u in told if isinstance(u, ToolCall)]
    assert (begin.id, begin.title) == ("t1", "ls")


def test_what_is_displayed_before_the_prompt_is_recorded_is_told_behind_it() -> None:
    talk = TerminalConversation("/w")
    talk.expect(PROMPT)
    assert talk.displayed(shown(0, "early")) == []
    told = talk.recorded(user("go"))
    assert told == [MessageChunk("user", Text("go"), "u1"), MessageChunk("agent", Text("early"), "d1")]


def test_what_is_displayed_after_the_end_of_its_turn_was_told_by_its_record() -> None:
    talk = TerminalConversation("/w")
    talk.expect(PROMPT)
    talk.recorded({**user("go"), "promptId": "p1"})
    assert said(talk.recorded(agent(words("one")))) == "one"
    talk.finish(interrupted=False)
    late = {**shown(0, "one"), "prompt_id": "p1"}
    assert talk.displayed(late) == []
    talk.expect(PROMPT)
    assert talk.displayed(late) == []
    assert said(talk.recorded({**user("go", "u2"), "promptId": "p2"})) == ""
    assert said(talk.displayed({**shown(0, "two", "d2"), "prompt_id": "p2"})) == "two"


def test_a_call_that_is_asked_about_before_its_record_is_told_once() -> None:
    talk = begun()
    talk.about_to_call({"tool_name": "Bash", "tool_input": {"command": "a"}, "tool_use_id": "t0"})
    talk.about_to_call({"tool_name": "Bash", "tool_input": {"command": "b"}, "tool_use_id": "t1"})
    asked = talk.asked_about({"tool_name": "Bash", "tool_input": {"command": "b"}, "permission_suggestions": []})
    assert asked["tool_use_id"] == "t1"
    assert [type(u) for u in talk.begin_asked(asked)] == [ToolCall]
    call: JsonObject = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "b"}}
    assert talk.recorded(agent(call, stop="tool_use")) == []


def test_the_turn_ends_with_the_tokens_of_its_messages() -> None:
    talk = begun()
    talk.recorded(agent(words("a"), "m1", "tool_use"))
    talk.recorded(agent(words("b"), "m2"))
    talk.recorded({"type": "system", "subtype": "turn_duration", "uuid": "x"})
    assert talk.over
    talk.finish(interrupted=False)
    assert talk.outcome == TurnEnd("end_turn", 6, 4)


@pytest.mark.parametrize(("stop", "reason"), [("max_tokens", "max_tokens"), ("refusal", "refusal")])
def test_a_message_that_was_cut_off_says_why(stop: str, reason: str) -> None:
    talk = begun()
    talk.recorded(agent(words("a"), stop=stop))
    talk.finish(interrupted=False)
    assert isinstance(talk.outcome, TurnEnd) and talk.outcome.stop_reason == reason


@pytest.mark.case("A02")
def test_an_error_of_the_api_is_a_failure_in_its_words() -> None:
    talk = begun()
    failed = agent(words("Please run /login · API Error: 401"), isApiErrorMessage=True, error="authentication_failed")
    assert talk.recorded(failed) == []
    talk.finish(interrupted=False)
    assert talk.outcome == Failure("login", "Please run /login · API Error: 401")


def test_an_interrupt_ends_the_turn_and_what_is_open_is_cancelled() -> None:
    talk = begun()
    call: JsonObject = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "b"}}
    talk.recorded(agent(call, stop="tool_use"))
    talk.recorded(user([words("[Request interrupted by user for tool use]")], "u2"))
    assert talk.over
    assert ToolCallUpdate("t1", status="cancelled") in talk.finish(interrupted=True)
    assert isinstance(talk.outcome, TurnEnd) and talk.outcome.stop_reason == "cancelled"


def test_the_end_of_the_turn_before_does_not_end_this_one() -> None:
    talk = begun()
    talk.finish(interrupted=False)
    talk.expect(PROMPT)
    talk.recorded({"type": "system", "subtype": "turn_duration", "uuid": "late"})
    assert not talk.over
    talk.recorded(user("go", "u9"))
    assert talk.accepted and not talk.over


def test_a_prompt_is_words_with_links_and_the_texts_behind_them() -> None:
    prompt = (
        Text("look at"),
        ResourceLink("file:///w/a b.md", "a b.md"),
        TextResource("file:///w/c.py", "code()"),
        Text("please"),
    )
    sent, contexts = typed_parts(prompt)
    assert sent == 'look at @"/w/a b.md" [@c.py](file:///w/c.py) please'
    assert contexts == ['<context ref="file:///w/c.py">\ncode()\n</context>']
    with pytest.raises(ValueError, match="documents"):
        typed_parts((BlobResource("file:///w/a.pdf", "AA==", "application/pdf"),))


def test_a_history_tells_pasted_texts_as_they_were_sent() -> None:
    pasted = (
        '\u2800/not a command [@c.py](file:///w/c.py)\n\n<pasted_content id="e567">\n'
        '<context ref="file:///w/c.py">\ncode()\n</context>\n</pasted_content id="e567">\n'
    )
    assert typed_content(user(pasted)) == [
        Text("/not a command [@c.py](file:///w/c.py)"),
        TextResource("file:///w/c.py", "code()"),
    ]
