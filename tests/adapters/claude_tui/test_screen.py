"""What is on the screen, as Claude Code 2.1.332 paints it: recorded screens, and what was typed on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.adapters.claude_tui.screen import Screen, look

SCREENS = Path(__file__).parent / "screens"


def lines(name: str) -> list[str]:
    return (SCREENS / f"{name}.txt").read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize(
    ("name", "box"),
    [
        ("prompt", ""),
        ("typed", "one\ntwo"),
        ("folded", "[Pasted text #1 +49 lines]"),
        ("interrupted", ""),
        ("rename_hint", "/rename  [name]"),
        ("long_title", ""),
    ],
)
def test_the_input_box_is_found_with_what_is_in_it(name: str, box: str) -> None:
    sight = look(lines(name))
    assert sight.ready and sight.box == box


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("trust", "trust"),
        ("key", "key"),
        ("theme", "onboarding"),
        ("offline", "offline"),
        ("login", "login"),
        ("mode", "mode"),
        ("permission", "permission"),
    ],
)
def test_a_dialog_is_known_for_what_it_is_and_never_taken_for_the_box(name: str, kind: str) -> None:
    sight = look(lines(name))
    assert not sight.ready and sight.box is None
    assert sight.dialog is not None and sight.dialog.kind == kind


def test_a_dialog_that_is_not_known_is_told_with_its_words() -> None:
    sight = look(["─" * 60, "  Would you like a new thing?", "  ❯ Yes", "    No", ""])
    assert sight.dialog is not None and sight.dialog.kind == "unknown"
    assert "a new thing" in sight.dialog.text
    sight = look(lines("config"))
    assert sight.dialog is not None and sight.dialog.kind == "unknown"


def test_a_turn_that_can_be_interrupted_is_named_below_the_box() -> None:
    rule, box = "─" * 60, "❯ esc to interrupt"
    for below, at_work in (("⏸ manual mode on · esc to interrupt · ← for agents", True), ("⏸ manual mode on", False)):
        screen = Screen(10, 60)
        screen.feed("\r\n".join((rule, box, rule, f"  {below}")).encode())
        assert screen.is_at_work is at_work


@pytest.mark.parametrize(("typed", "box"), [("P\x1b[2mress up to edit queued messages", ""), ("Press up", "Press up")])
def test_the_hint_that_something_is_queued_is_nothing_in_the_box(typed: str, box: str) -> None:
    screen = Screen(10, 60)
    screen.feed(f"{'─' * 60}\r\n❯ {typed}\x1b[22m\r\n{'─' * 60}".encode())
    assert screen.look().box == box


def test_shell_mode_is_no_box_for_a_prompt_and_an_empty_screen_is_nothing() -> None:
    assert look(lines("shell_mode")).box is None
    assert look([""] * 50) == (None, None)


def test_words_of_a_dialog_in_the_conversation_are_no_dialog() -> None:
    said = ["● Do you want to proceed? Select login method", *lines("prompt")]
    assert look(said).ready


def test_hints_in_the_box_are_not_what_was_typed_and_private_sequences_do_no_harm() -> None:
    screen = Screen(6, 40)
    rule = "─" * 40
    screen.feed(b"\x1b[>4;2m\x1b[?2004h\x1b[<u\x1b[?4m")
    screen.feed(f"{rule}\r\n❯ \x1b[2mTry “fix it”\x1b[22m\r\n{rule}\r\n".encode())
    assert screen.look() == ("", None)
    screen.feed("\x1b[2;3Hreal 漢字 \x1b[38;5;2mwords\x1b[39m\x1b[K".encode())
    assert screen.look().box == "real 漢字 words"


def test_a_character_that_is_cut_between_two_reads_is_painted_whole() -> None:
    screen = Screen(3, 20)
    for byte in "ä漢".encode():
        screen.feed(bytes([byte]))
    assert screen.lines[0] == "ä漢"
