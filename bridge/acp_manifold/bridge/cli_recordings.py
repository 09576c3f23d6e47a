"""The commands `acp-manifold recordings ...`: look recordings over, compare two, cut a part out of one."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acp_manifold.translators.values import NamedTuple

from .errors import BridgeError
from .once import Fault, say

if TYPE_CHECKING:
    from acp_manifold.translators.wire.comparing import Difference

    from .recording.check import Finding
    from .recording.reader import Recording
    from .recording.schema import AcpSchema

_SHOWN = 70
"""Characters of a value in a line of text; JSON has all."""

_FILE = click.Path(path_type=Path)


class Trouble(Fault):
    """Nothing can be said, as opposed to: there is a difference."""

    exit_code = 2


@click.group()
def recordings() -> None:
    """Check, compare and cut recordings of sessions."""


# -- check ------------------------------------------------------------------------------------------------------------


@recordings.command()
@click.argument("files", metavar="FILE|FOLDER...", nargs=-1, required=True, type=_FILE)
@click.option("schema", "--schema", metavar="FILE", type=_FILE, help="Hold the client's lines against this ACP schema.")
@click.option("as_json", "--json", is_flag=True, help="As a JSON array.")
def check(files: tuple[Path, ...], schema: Path | None, as_json: bool) -> None:
    """Look recordings over: format, shape of each line, what answers what, secrets that look unscrubbed.

    The exit status is 1 if there is a fault. Notes, such as a request without an answer, may well be as they should.
    A schema is that of the npm package @agentclientprotocol/sdk, and needs the Python package jsonschema.
    """
    judge = _schema(schema) if schema is not None else None
    found = [each for file in files for each in (_below(file) if file.is_dir() else [file])]
    if not found:
        raise Trouble(f"No file in {', '.join(map(str, files))} has a name that ends in .jsonl or .jsonl.gz.")
    reports = [_checked(file, judge) for file in found]
    if as_json:
        say(json.dumps([report for report, _ in reports], indent=2))
    else:
        for file, (report, findings) in zip(found, reports, strict=True):
            for line in _check_lines(file, report, findings):
                say(line)
    sys.exit(1 if any(finding.severity == "fault" for _, findings in reports for finding in findings) else 0)


def _schema(path: Path) -> AcpSchema:
    from .recording.schema import AcpSchema

    try:
        return AcpSchema(path)
    except BridgeError as exc:
        raise Trouble(exc.message) from exc


def _checked(file: Path, schema: AcpSchema | None) -> tuple[dict[str, object], list[Finding]]:
    from .recording import reader
    from .recording.check import Finding, check

    report: dict[str, object] = {"file": str(file)}
    try:
        recording = reader.read(file)
    except BridgeError as exc:
        findings = [Finding("fault", 0, exc.message)]
    else:
        findings = check(recording, os.environ, os.path.expanduser("~"), _user(), schema)
        report |= {"scenario": recording.header.scenario, "clis": recording.header.clis}
        report |= {"entries": len(recording.entries)}
    told = [{"severity": found.severity, "line": found.number or None, "what": found.what} for found in findings]
    return {**report, "findings": told}, findings


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _check_lines(file: Path, report: dict[str, object], findings: list[Finding]) -> Iterator[str]:
    for found in findings:
        place = f"{file}:{found.number}" if found.number else str(file)
        yield _plain(f"{place}: {found.severity}: {found.what}")
    faults = sum(found.severity == "fault" for found in findings)
    if "entries" in report:
        notes = len(findings) - faults
        yield f"{file}: {report['entries']} entries, {_count(faults, 'fault')}, {_count(notes, 'note')}"


# -- diff -------------------------------------------------------------------------------------------------------------


@recordings.command()
@click.argument("one", metavar="A", type=_FILE)
@click.argument("other", metavar="B", type=_FILE)
@click.option("as_json", "--json", is_flag=True, help="As a JSON array, an object for each pair that differs.")
def diff(one: Path, other: Path, as_json: bool) -> None:
    """What changed on the wire from recording A to recording B of the same scenario.

    Of two folders, such as of two versions of a CLI, the recordings of the same names are compared. Ids, times, paths,
    counts of tokens and the order of things don't count as changes. The exit status is 0 if nothing changed, 1 if
    something did, 2 if a recording can't be read.
    """
    pairs = [_compared(before, after) for before, after in _pairs(one, other)]
    unlike = [pair for pair in pairs if pair.found or None in pair.files]
    if as_json:
        say(json.dumps([_pair(pair) for pair in unlike], indent=2))
    else:
        for pair in unlike:
            for line in _diff_lines(pair):
                say(line)
    sys.exit(1 if unlike else 0)


class _Pair(NamedTuple):
    """Two recordings of one scenario, or the one that there is."""

    files: tuple[Path | None, Path | None]
    headings: tuple[str, str]
    found: list[Difference]


def _pairs(one: Path, other: Path) -> list[tuple[Path | None, Path | None]]:
    if not (one.is_dir() and other.is_dir()):
        return [(one, other)]
    before, after = ({file.relative_to(folder): file for file in _below(folder)} for folder in (one, other))
    return [(before.get(name), after.get(name)) for name in sorted({*before, *after})]


def _compared(one: Path | None, other: Path | None) -> _Pair:
    if one is None or other is None:
        return _Pair((one, other), (f"Only there: {one}", f"Only there: {other}"), [])
    from acp_manifold.translators.wire.comparing import compare

    before, after = _read(one), _read(other)
    found = compare(
        [entry.to_wire() for entry in before.entries],
        [entry.to_wire() for entry in after.entries],
        (before.header.backend or "", after.header.backend or ""),
    )
    return _Pair((one, other), (f"{one}{_clis(before)}", f"{other}{_clis(after)}"), found)


def _clis(recording: Recording) -> str:
    clis = ", ".join(f"{name} {version}" for name, version in recording.header.clis.items())
    return _plain(f" ({clis})") if clis else ""


def _difference(found: Difference) -> dict[str, object]:
    told: dict[str, object] = {"sign": found.sign, "leg": found.leg, "dir": "in" if found.inward else "out"}
    told |= {"name": found.name, "times": found.times}
    if found.change is not None:
        told["change"] = found.change._asdict()
    return told


def _pair(pair: _Pair) -> dict[str, object]:
    one, other = (str(file) if file is not None else None for file in pair.files)
    return {"a": one, "b": other, "differences": [_difference(found) for found in pair.found]}


def _diff_lines(pair: _Pair) -> Iterator[str]:
    yield from (
        f"{sign} {heading}"
        for sign, heading, file in zip(("---", "+++"), pair.headings, pair.files, strict=True)
        if file is not None
    )
    heading = None
    for difference in pair.found:
        way = "from" if difference.inward else "to"
        title = _plain(f"{way} {difference.leg}: {difference.name}")
        times = f"   ({difference.times} times)" if difference.times > 1 else ""
        if difference.change is None:
            yield f"{difference.sign} {title}{times}"
            heading = None
            continue
        if title != heading:
            yield f"  {title}"
            heading = title
        change = difference.change
        values = {"+": _value(change.after), "-": _value(change.before)}
        both = f"{_value(change.before)} -> {_value(change.after)}"
        yield _plain(f"    {change.sign} {change.place}: {values.get(change.sign, both)}") + times


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# -- cut --------------------------------------------------------------------------------------------------------------


@recordings.command()
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("session", "--session", metavar="ID", help="The entries of this session; its beginning is enough.")
@click.option("begin", "--from", type=float, default=0.0, metavar="SECONDS", help="From then on.")
@click.option("end", "--to", type=float, default=math.inf, metavar="SECONDS", help="Up to then.")
@click.option(
    "output", "-o", "--output", required=True, metavar="FILE", type=_FILE, help="Where to; gzip if it ends in .gz."
)
def cut(file: Path, session: str | None, begin: float, end: float, output: Path) -> None:
    """Write a part of a recording: one session of it, or a stretch of time, or both.

    Times stay as they are. What belongs to no session goes with each, and a request keeps its answer.
    """
    from .recording.cut import cut, sessions
    from .recording.writer import write

    if session is None and begin == 0.0 and end == math.inf:
        raise click.UsageError("Say what to cut out: --session, --from or --to.")
    whole = _read(file)
    if output.exists() and output.samefile(file):
        raise Trouble(f"{output} is the recording itself. Name another file with -o.")
    entries = cut(whole, _one_of(session, sessions(whole), file) if session is not None else None, begin, end)
    if not entries:
        raise Fault(f"Nothing of {file} is in that stretch of time: its entries reach to {whole.entries[-1].t:g} s.")
    try:
        write(output, whole.header, entries)
    except OSError as exc:
        raise Trouble(f"{output} can't be written: {exc.strerror or exc}") from exc
    say(f"{output}: {len(entries)} of {len(whole.entries)} entries")


def _one_of(wanted: str, there: list[str], file: Path) -> str:
    found = [session for session in there if session == wanted] or [s for s in there if s.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    few = "None" if not found else "More than one"
    listed = "".join(f"\n  {_plain(session)}" for session in found or there)
    raise Fault(f"{few} of the sessions in {file} is {wanted}. There are:{listed}")


# -- all --------------------------------------------------------------------------------------------------------------


def _below(folder: Path) -> list[Path]:
    """The recordings in a folder and those below it."""
    return sorted(file for file in folder.rglob("*") if file.name.endswith((".jsonl", ".jsonl.gz")) and file.is_file())


def _read(file: Path) -> Recording:
    from .recording import reader

    try:
        return reader.read(file)
    except BridgeError as exc:
        raise Trouble(exc.message) from exc


def _plain(text: str) -> str:
    """A text of a recording that does nothing to a terminal; the spaces at its beginning stay."""
    from acp_manifold.translators.plain import printable

    return printable(text).replace("\n", " ")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
