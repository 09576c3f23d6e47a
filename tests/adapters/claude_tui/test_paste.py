"""What is typed for a prompt: whatever stands in it, plain words to the program."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.adapters.claude_tui.paste import (
    BEGIN,
    BLANK,
    END,
    PIECE,
    PIECE_BREAKS,
    pastes,
    prompt,
    safe,
    squeezed,
)

HOSTILE = st.text(
    st.one_of(
        st.sampled_from("!/#&?@\\\x1b\x9b[]~201;\x03\x04\r\n\t\x00\x7f\u200b\u202e\ufeff\u2028 a"),
        st.characters(),
    )
)


@given(HOSTILE)
def test_no_control_or_invisible_character_is_left_but_line_breaks(text: str) -> None:
    typed = prompt(text)
    assert not {unicodedata.category(char) for char in typed if char != "\n"} & {"Cc", "Cf", "Cs"}


@given(HOSTILE)
def test_the_only_escape_sequences_written_are_the_two_of_the_paste(text: str) -> None:
    for piece in pastes(prompt(text)):
        assert piece.startswith(BEGIN) and piece.endswith(END)
        inside = piece[len(BEGIN) : -len(END)]
        assert b"\x1b" not in inside and b"\r" not in inside and b"\x03" not in inside


@given(HOSTILE)
def test_nothing_begins_as_a_command_or_ends_as_a_line_that_goes_on(text: str) -> None:
    typed = prompt(text)
    assert not typed.startswith(("!", "#", "&", "?"))
    # The program looks for a command behind any white space.
    assert not typed.lstrip().startswith("/")
    assert not typed.endswith("\\")


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"])))
def test_plain_words_are_typed_as_they_are(text: str) -> None:
    assert squeezed(prompt(text)) == squeezed(text)


@given(st.text(st.sampled_from("ab \n"), max_size=4000))
def test_the_pieces_are_the_text_and_each_is_too_small_to_be_folded(text: str) -> None:
    pieces = [piece[len(BEGIN) : -len(END)].decode() for piece in pastes(safe(text))]
    assert "".join(pieces) == text
    if len(pieces) > 1:
        assert all(len(piece) <= PIECE and piece.count("\n") <= PIECE_BREAKS for piece in pieces)


def test_a_very_long_text_is_one_paste() -> None:
    assert len(pastes("line\n" * 5000)) == 1


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("!rm -rf /", " !rm -rf /"),
        ("\n\n !ls", " !ls"),
        ("#remember", " #remember"),
        ("/exit", f"{BLANK}/exit"),
        ("  /exit", f"{BLANK}/exit"),
        ("a\x1b[201~\r!ls\r", "a\n!ls"),
        ("a\x1b]0;title\x07b\x1b", "ab"),
        ("tab\there", "tab    here"),
        ("ends so\\", f"ends so\\{BLANK}"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\udc80lone", "lone"),
        ("\x1b[A\x03", ""),
    ],
)
def test_what_means_something_to_the_input_box_means_nothing(sent: str, typed: str) -> None:
    assert prompt(sent) == typed
