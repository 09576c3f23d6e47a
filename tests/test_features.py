"""The feature table of README is the one of `features.py`, and every yes of ours names a test that exists."""

from __future__ import annotations

import pytest

from tests.features import FEATURES, README, Feature, missing, with_table

rows = pytest.mark.parametrize("feature", FEATURES, ids=[feature.what for feature in FEATURES])


def test_readme_has_the_table() -> None:
    text = README.read_text()
    assert text == with_table(text), "Run `make features`"


@rows
def test_what_works_names_tests_that_exist(feature: Feature) -> None:
    assert not feature.works or feature.tests, "a feature that works names the tests that show it"
    assert [problem for test in feature.tests if (problem := missing(test)) is not None] == []


@rows
def test_a_cell_of_ours_says_yes_or_no_or_how_else(feature: Feature) -> None:
    for cell in (feature.claude, feature.codex):
        assert cell.startswith(("yes", "no", "not yet", "as ")), cell


def test_a_test_that_is_not_there_is_told() -> None:
    assert missing("test_features.py::test_a_test_that_is_not_there_is_told") is None
    assert missing("test_features.py::test_nothing") and missing("no/such.py::test_x")
