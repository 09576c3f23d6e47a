"""The form in which Claude Code keeps titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.translators.claude.titles import stored_form
from acp_manifold.translators.titles import LIMIT, normalise


@pytest.mark.case("T06")
@pytest.mark.parametrize(
    "title, stored",
    [
        ("Plain", "Plain"),
        ("  a  b\n", "a b"),
        ("👩‍👩‍👧 family", "👩 👩 👧 family"),
        ("🏳️‍🌈", "🏳️ 🌈"),
        ("❤️ 1️⃣ 👍🏽 🇩🇪 e\u0301", "❤️ 1️⃣ 👍🏽 🇩🇪 e\u0301"),
        ("\u202eabc\ufeff\u2066d", "abc d"),
        ("\U000e0041", ""),
        ("x" * 300, "x" * 200),
    ],
)
def test_a_title_is_kept_as_claude_code_2_1_332_keeps_it(title: str, stored: str) -> None:
    assert stored_form(title) == stored


@given(st.text(alphabet=st.characters() | st.sampled_from("\u200d👩👧🏽🇩"), max_size=300))
def test_the_form_stays_what_it_is_and_holds_nothing_that_the_filter_takes(title: str) -> None:
    stored = stored_form(title)
    assert stored_form(stored) == normalise(stored) == stored
    assert "\u200d" not in stored and len(stored) <= LIMIT
