"""The normal form of a title, and the table of what takes the place of what."""

from __future__ import annotations

import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.translators.titles import DECISIONS, LIMIT, Origin, normalise

ORIGINS: tuple[Origin, ...] = ("none", "generated", "user", "client")

PIECES = st.sampled_from(
    [
        "a",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\x00",
        "\x1b[31m",
        "\x1b]0;t\x07",
        "\u200b",
        "\u202e",
        "\ufeff",
        "\u2028",
        "e\u0301",
    ]
    + ["👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "\ud800", "שלום", "\u3164", "\xa0", "/clear", "<b>"]
)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("  Fix\tthe\r\n build  ", "Fix the build"),
        ("a\x00b\x07c\x7fd", "a b c d"),
        ("\x1b[31mred\x1b[0m done", "red done"),
        ("\x1b]0;window title\x07rest", "rest"),
        ("a\u2028b\u2029c\u0085d", "a b c d"),
        ("zero\u200bwidth\ufeff \u202eturned\u202c", "zero width turned"),
        ("👩\u200d👩\u200d👧 family", "👩\u200d👩\u200d👧 family"),
        ("no\u200djoin", "no join"),
        ("lone \ud83d half", "lone half"),
        ("\u3164\u2800x", "\u2800x"),
        ("קוד <b>--help</b> /clear", "קוד <b>--help</b> /clear"),
        ("a" * 5000, "a" * 200),
        ("a" * 199 + "e\u0301", "a" * 199),
        ("a" * 199 + "👍🏽", "a" * 199),
        ("a" * 199 + "🇩🇪", "a" * 199),
        ("a" * 198 + "🇩🇪", "a" * 198 + "🇩🇪"),
        ("a" * 199 + "🇩🇪".replace("🇩", "🇩", 1) * 3, "a" * 199),
        ("", ""),
        (" \n\u200b\x1b[0m", ""),
    ],
)
def test_a_title_has_one_normal_form(sent: str, stored: str) -> None:
    assert normalise(sent) == stored


@given(st.one_of(st.text(), st.lists(PIECES, max_size=300).map("".join)))
def test_the_normal_form_is_one_clean_short_line_and_stays_itself(sent: str) -> None:
    stored = normalise(sent)
    assert normalise(stored) == stored
    assert len(stored) <= LIMIT
    assert stored == stored.strip()
    assert "  " not in stored
    assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"} for char in stored)
    stored.encode("utf-8")


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=LIMIT))
def test_plain_words_are_kept_as_they_are(title: str) -> None:
    visible = [char for char in title if char not in "\u115f\u1160\u3164\uffa0"]
    if len(visible) == len(title):
        assert normalise(title) == title


def test_the_table_says_something_about_every_pair() -> None:
    assert set(DECISIONS) == set(product(ORIGINS, ("generated", "user", "client")))


@pytest.mark.parametrize("have", ORIGINS)
def test_a_person_is_always_followed_and_a_model_never_against_one(have: Origin) -> None:
    assert DECISIONS[have, "client"] == DECISIONS[have, "user"] == "take"
    assert DECISIONS[have, "generated"] == ("discard" if have in ("user", "client") else "take")
