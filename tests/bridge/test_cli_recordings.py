"""`acp-manifold recordings ...` and `acp-manifold view` as a person types them."""

from __future__ import annotations

import gzip
import json
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from acp_manifold.bridge.commands import acp_manifold
from acp_manifold.bridge.recording.reader import read
from tests.view.scene import ONE, TWO, Scene, request, scene, write


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(acp_manifold, [str(word) for word in words])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "scene.jsonl", scene())


# check


def test_check_says_that_all_is_well(file: Path) -> None:
    result = run("recordings", "check", file)
    assert result.exit_code == 0
    assert result.output == f"{file}: 90 entries, 0 faults, 0 notes\n"


def test_check_names_file_and_line_of_each_fault_and_ends_with_1(file: Path, tmp_path: Path) -> None:
    s = Scene()
    s.client("in", request(1, "session/list", cwd="/home/somebody"))
    bad = write(tmp_path / "bad.jsonl", s.entries)
    result = run("recordings", "check", file, bad)
    assert result.exit_code == 1
    assert result.output.splitlines()[1:] == [
        f"{bad}:2: note: session/list has no answer in this recording",
        f"{bad}:2: fault: line.params.cwd looks unscrubbed: somebody's home directory",
        f"{bad}: 1 entries, 1 fault, 1 note",
    ]


def test_check_goes_on_after_a_file_that_is_no_recording_and_tells_it_in_json_too(file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    result = run("recordings", "check", bad, tmp_path / "none", file, "--json")
    assert result.exit_code == 1
    first, second, third = json.loads(result.output)
    assert "no recording" in first["findings"][0]["what"]
    assert "can't be read" in second["findings"][0]["what"]
    assert third == {
        "file": str(file),
        "scenario": "two sessions at work, titles from everywhere",
        "clis": {"claude": "2.1.332", "codex": "0.163.0"},
        "entries": 90,
        "findings": [],
    }


def test_check_with_what_is_no_schema_says_so(file: Path) -> None:
    result = run("recordings", "check", file, "--schema", file)
    assert result.exit_code == 2
    assert "schema" in result.output


# diff


def test_diff_is_silent_about_recordings_that_are_alike(file: Path) -> None:
    result = run("recordings", "diff", file, file)
    assert (result.exit_code, result.output) == (0, "")


def test_diff_tells_what_changed_under_the_message_it_is_in(file: Path, tmp_path: Path) -> None:
    text = json.dumps(scene()).replace('"selected"', '"chosen"').replace('"unheard"', '"un\\u001b[31mheard"')
    other = write(tmp_path / "other.jsonl", json.loads(text))
    result = run("recordings", "diff", file, other)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"--- {file} (claude 2.1.332, codex 0.163.0)",
        f"+++ {other} (claude 2.1.332, codex 0.163.0)",
        "  from client: answer to session/request_permission",
        '    ~ result.outcome.outcome: "selected" -> "chosen"',
        "- to backend: answer to unheard",
        "+ to backend: answer to unheard",
        "- from backend: unheard",
        "+ from backend: unheard",
    ], "and nothing of it reaches the terminal but text"


def test_diff_as_json_holds_whole_values(file: Path, tmp_path: Path) -> None:
    long = "x" * 500
    other = write(tmp_path / "other.jsonl", json.loads(json.dumps(scene()).replace("end_turn", long)))
    ((pair,)) = json.loads(run("recordings", "diff", file, other, "--json").output)
    assert (pair["a"], pair["b"]) == (str(file), str(other))
    found = pair["differences"][0]
    assert found["change"] == {"sign": "~", "place": "result.stopReason", "before": "end_turn", "after": long}
    assert (found["leg"], found["dir"], found["times"]) == ("client", "out", 1)
    assert long not in run("recordings", "diff", file, other).output


def test_diff_of_folders_compares_what_has_one_name(tmp_path: Path) -> None:
    other = json.loads(json.dumps(scene()).replace("allow_once", "reject_once"))
    for place, entries in (("a/x", scene()), ("a/y", scene()), ("a/gone", scene()), ("b/x", other), ("b/y", scene())):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        write(tmp_path / f"{place}.jsonl", entries)
    result = run("recordings", "diff", tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 1
    clis = "(claude 2.1.332, codex 0.163.0)"
    assert result.output.splitlines() == [
        f"--- Only there: {tmp_path / 'a' / 'gone.jsonl'}",
        f"--- {tmp_path / 'a' / 'x.jsonl'} {clis}",
        f"+++ {tmp_path / 'b' / 'x.jsonl'} {clis}",
        "  from client: answer to session/request_permission",
        '    ~ result.outcome.optionId: "allow_once" -> "reject_once"',
    ]


def test_check_of_a_folder_looks_at_all_below_it(file: Path, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write(tmp_path / "below" / "another.jsonl", scene())
    result = run("recordings", "check", tmp_path)
    assert [line.partition(":")[0] for line in result.output.splitlines()] == [
        str(tmp_path / "below" / "another.jsonl"),
        str(file),
    ]


def test_check_of_a_folder_without_any_is_trouble(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    result = run("recordings", "check", tmp_path)
    assert (result.exit_code, result.output) == (
        2,
        f"Error: No file in {tmp_path} has a name that ends in .jsonl or .jsonl.gz.\n",
    )


def test_diff_of_what_is_no_recording_is_trouble_and_not_a_difference(file: Path, tmp_path: Path) -> None:
    result = run("recordings", "diff", file, tmp_path / "none")
    assert result.exit_code == 2
    assert "can't be read" in result.output


# cut


def test_cut_keeps_one_session_with_what_belongs_to_none(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = run("recordings", "cut", file, "--session", TWO[:8], "-o", out)
    assert result.exit_code == 0
    part = read(out)
    assert result.output == f"{out}: {len(part.entries)} of 90 entries\n"
    assert ONE not in out.read_text()
    methods = [
        entry.line["method"]
        for entry in part.entries
        if entry.line and "method" in entry.line and entry.leg == "client"
    ]
    assert methods == ["initialize", "session/new", "session/prompt"]
    assert run("recordings", "check", out).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_cut_by_time_keeps_answers_with_their_requests(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl.gz"
    assert run("recordings", "cut", file, "--from", "0.8", "--to", "1.0", "-o", out).exit_code == 0
    assert gzip.decompress(out.read_bytes())
    lines = [entry.line or {} for entry in read(out).entries]
    assert any(line.get("result") == {"stopReason": "end_turn"} for line in lines), "the answer to a prompt of then"
    assert run("recordings", "check", out).output.endswith("0 faults, 0 notes\n")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "--session, --from or --to"),
        (("--session", "x"), 1, f"None of the sessions in {{file}} is x. There are:\n  {ONE}\n  {TWO}"),
        (("--session", ""), 1, "More than one of the sessions"),
        (("--from", "100"), 1, "reach to 6."),
    ],
)
def test_cut_refuses_what_makes_no_sense(
    file: Path, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    out = tmp_path / "out.jsonl"
    result = run("recordings", "cut", file, *words, "-o", out)
    assert result.exit_code == status
    assert said.format(file=file) in result.output
    assert not out.exists()


def test_cut_does_not_write_over_what_it_reads(file: Path) -> None:
    before = file.read_bytes()
    assert run("recordings", "cut", file, "--session", ONE, "-o", file).exit_code == 2
    assert file.read_bytes() == before


# view


def test_view_writes_a_private_page_named_as_the_recording_and_writes_it_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    packed = tmp_path / "scene.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for recording in (file, packed):
        result = run("view", recording)
        assert (result.exit_code, result.output) == (0, "scene.html\n")
    page = tmp_path / "here" / "scene.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "two sessions at work" in page.read_text(encoding="utf-8")
    assert list((tmp_path / "here").iterdir()) == [page], "nothing else is left there"


def test_view_leaves_alone_what_it_has_not_made(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    theirs = tmp_path / "here" / "scene.html"
    theirs.write_text("<!doctype html>\nmine")
    result = run("view", file)
    assert result.exit_code == 1
    assert "-o" in result.output
    assert theirs.read_text() == "<!doctype html>\nmine"
    assert run("view", file, "-o", theirs).exit_code == 0, "but what is named is meant"


def test_view_writes_to_stdout_and_says_what_can_not_be_written_or_read(file: Path, tmp_path: Path) -> None:
    whole = run("view", file, "-o", "-").output
    assert whole.startswith("<!doctype html>") and whole.rstrip().endswith("</html>")
    for words, said in (
        ((file, "-o", tmp_path / "none" / "x.html"), "can't be written: No such file"),
        ((tmp_path / "none.jsonl",), "can't be read: No such file"),
    ):
        result = run("view", *words)
        assert result.exit_code == 1
        assert said in result.output


def test_view_tells_in_the_page_that_the_file_is_cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])
    assert '"note":"Cut off: line 91 is cut off after' in run("view", file, "-o", "-").output


def test_view_opens_the_page_in_the_persons_browser(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser.py"
    browser.write_text(f"import sys\nopen({str(seen)!r}, 'w').write(sys.argv[1])\n")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {browser} %s")
    page = tmp_path / "page.html"
    assert run("view", file, "-o", page, "--open").exit_code == 0
    assert seen.read_text() == page.as_uri()
