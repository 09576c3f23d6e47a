"""The page as text: self-contained, under a policy that lets nothing else run, with data that can't end its element."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from acp_manifold.bridge.view.data import page_data
from acp_manifold.bridge.view.page import SCRIPTS, page
from acp_manifold.translators.narrow import JsonObject

from .scene import HEADER, HOSTILE, ONE, hostile, scene

PACKAGE = "acp_manifold.bridge.view"
WAYS_TO_MAKE_HTML = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "Function(",
    'setAttribute("on',
)


def parts(whole: str) -> tuple[str, str, str]:
    """Data, style and script of a page."""
    data = re.search(r'<script id="recording" type="application/json">(.*?)</script>', whole, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", whole, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", whole, re.DOTALL)
    assert data and style and script
    return data[1], style[1], script[1]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_data_is_json_without_a_less_than_sign_and_comes_back_as_it_was(text: str) -> None:
    given = page_data(text, {**HEADER, "scenario": text}, hostile(text), text)
    data, _, _ = parts(page(given))
    assert "<" not in data
    assert json.loads(data) == json.loads(json.dumps(given))
    page(given).encode("utf-8")


def test_the_policy_lets_run_and_style_what_is_in_the_page_and_nothing_else() -> None:
    whole = page(page_data("a", HEADER, scene()))
    _, style, script = parts(whole)
    rules = dict(rule.split(" ", 1) for rule in re.findall(r'Policy" content="([^"]*)"', whole)[0].split("; "))
    assert rules["default-src"] == "'none'"
    for name, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert rules["trusted-types"] == rules["base-uri"] == rules["form-action"] == "'none'"


def test_the_page_fetches_nothing_and_its_script_makes_no_html() -> None:
    _, style, script = parts(page(page_data("a", HEADER, [])))
    assert "url(" not in style and "@import" not in style
    assert [way for way in WAYS_TO_MAKE_HTML if way in script] == []
    assert "http" not in script


def test_every_part_of_the_page_is_in_the_package() -> None:
    there = {path.name for path in files(PACKAGE).iterdir() if not path.name.endswith((".py", "__pycache__"))}
    assert there == {"page.html", "page.css", *SCRIPTS}


def test_a_line_is_kept_as_it_is_told_to_a_person(tmp_path: Path) -> None:
    entries: list[JsonObject] = [
        {"t": 0, "leg": "client", "dir": "in", "line": {"n": 12345678901234567890, "half": "\ud800", "e": "é"}}
    ]
    (message,) = json.loads(parts(page(page_data("a", HEADER, entries)))[0])["messages"]
    assert message["line"] == '{"n":12345678901234567890,"half":"\\ud800","e":"é"}'


def test_what_is_marked_is_what_a_person_looks_for() -> None:
    data = json.loads(parts(page(page_data("a", HEADER, scene())))[0])
    marks = [message["marks"] for message in data["messages"]]
    counts = {mark: sum(mark in each for each in marks) for mark in ("title", "question", "error", "dropped")}
    assert counts == {"title": 9, "question": 6, "error": 4, "dropped": 2}
    assert {session["id"]: session["label"] for session in data["sessions"]}[ONE] == "Parser of dates"


@pytest.mark.parametrize(("asked", "marks"), [(True, []), (False, ["error"])])
def test_a_process_that_ended_unasked_is_marked(asked: bool, marks: list[str]) -> None:
    note: JsonObject = {"note": "exit", "how": "was killed", "asked": asked, "process": 1}
    entry: JsonObject = {"t": 0, "leg": "bridge", "backend": "codex", "line": note}
    (message,) = json.loads(parts(page(page_data("a", HEADER, [entry])))[0])["messages"]
    assert (message["name"], message["words"], message["marks"]) == ("exit", "was killed", marks)
