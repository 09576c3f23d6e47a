"""The field reports this project answers to: what users of other agents ran into, as behaviour to hold here.

A test that holds one is marked `@pytest.mark.case("T01")`. `test_requirements.py` sees to it that
no test names an unknown case, and that every case of `HELD` has a test.
"""

from __future__ import annotations

CASES: dict[str, str] = {
    "T01": "a title set by the client is stored, in mid-turn too, and is there after a restart",
    "T02": "a generated title never takes the place of the client's while the session lives",
    "T04": "compaction keeps the title",
    "T05": "a session nobody named is called by its first prompt",
    "T06": "titles have one normal form, and the answer is what was stored",
    "T09": "a generated title reaches the client when nobody set one",
    "T10": "a rename by a person, by whatever program, counts",
    "M01": "a session that waits for a person holds up no other",
    "M02": "streams that run at once each reach their own session",
    "M05": "background work of a session ends neither its next prompt nor anybody else's",
    "C01": "a cancel ends the turn of its session and of no other",
    "C02": "a cancel before the CLI has said anything still ends the turn",
    "C03": "a cancelled turn ends as cancelled, whatever the CLI calls it",
    "C05": "a second prompt waits its turn, and a cancel ends the waiting one too",
    "C07": "a CLI that ignores an interrupt does not hold the turn for ever",
    "P01": "closing a session answers no other session's question",
    "P02": "a question ends with its turn; a late yes runs nothing",
    "P03": "no refuses the one call, and the turn goes on",
    "L01": "an unknown session id is an error",
    "L02": "the list is ordered by the conversation's time, not the file's",
    "L03": "sessions are found however their directory is spelled",
    "L05": "only what a person would resume is listed",
    "L06": "a load replays what was said once, in order",
    "L09": "a damaged file or line costs itself alone",
    "L10": "a deleted session is gone, and only that one",
    "F01": "lines of any length up to the limit pass whole, both ways",
    "F02": "a line ends at LF and at nothing else",
    "F03": "noise on a CLI's stdout is survived, and ours carries protocol alone",
    "K01": "a CLI that dies in mid-turn ends that turn with a reason",
    "K02": "no process is left behind, however we end",
    "K04": "a CLI that writes a lot to stderr goes on",
    "A01": "the CLIs get the person's environment without the marks of an enclosing session",
    "A02": "a missing login and a reached limit are said as what they are",
    "A04": "a CLI that can't start is reported with its cause",
    "W01": "a line that is half written is waited for",
    "W02": "a title given before there is a transcript is kept",
    "S01": "a long history costs no more than it must",
    "S02": "output is passed on as it comes and never sent again",
    "R01": "a session can be given its title when it is made",
    "R02": "a recording holds nothing that can't be shared",
    "R05": "an idle session costs nothing",
}

HELD = frozenset(
    "T01 T06 T09 M02 C01 C02 P03 L01 F01 F02 F03 K02 K04 A01 A02 A04 S02 R01 "  # issue 2
    "M01 M05 C03 C05 C07 P01 P02 K01 R05 "  # issue 3
    "T02 T04 T05 T10 W01 W02 L02 L03 L05 L09 S01 "  # issue 4
    "L06 L10 "  # issue 5
    "R02".split()  # issue 8
)
"""The cases that have to have a test."""
