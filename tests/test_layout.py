"""What the tree promises: one namespace over three roots, typed, documented, and free of what doesn't belong."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("adapters", "bridge", "translators")

FOREIGN = (
    *(".".join(host) for host in (("pypi", "org"), ("python" + "hosted", "org"), ("npmjs", "org"), ("npmjs", "com"))),
    "/opt/" + "pypi",
    "--" + "hash=",
)
"""Nothing here may tie an installation to one package index: whoever installs has their own."""


def sources() -> Iterator[Path]:
    for layer in LAYERS:
        yield from sorted((ROOT / layer).rglob("*.py"))


@pytest.mark.parametrize("layer", LAYERS)
def test_the_import_package_is_a_namespace_with_one_typed_leaf_in_each_root(layer: str) -> None:
    package = ROOT / layer / "acp_manifold"
    assert [path.name for path in package.iterdir() if path.name != "__pycache__"] == [layer]
    assert (package / layer / "py.typed").is_file()
    assert (package / layer / "__init__.py").is_file()


def test_every_source_file_opens_with_what_it_is_about() -> None:
    silent = [str(path.relative_to(ROOT)) for path in sources() if not docstring(path)]
    assert silent == []


def test_no_file_names_a_package_index() -> None:
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in files()}
    guilty = [str(path.relative_to(ROOT)) for path, text in texts.items() if any(word in text for word in FOREIGN)]
    assert guilty == []


def files() -> Iterator[Path]:
    """Everything that is ours: the top-level files, and the folders that hold no generated ones."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != "bench.json")
    for folder in (*LAYERS, ".ci", "bench", "recordings", "tests"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc")


def docstring(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_recordings_hold_no_place_of_the_machine_they_were_made_on() -> None:
    for path in sorted((ROOT / "recordings").rglob("*.jsonl")):
        text = path.read_text(encoding="utf-8")
        places = r"/tmp/[^\s\"]*|/root/[^\s\"]*|/home/(?!user)[^\s\"]*|sk-[a-z]+-[A-Za-z0-9]{8,}"
        found: list[str] = re.findall(places, text)
        assert not found, (path.name, found[:3])


def test_what_is_committed_is_text_and_small() -> None:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout, so nobody knows what is committed")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    present = [path for path in paths if path.is_file()]
    assert len(present) > 100
    large = [path.name for path in present if path.stat().st_size > 1024 * 1024]
    binary = [path.name for path in present if b"\0" in path.read_bytes()[:8192]]
    assert (large, binary) == ([], [])
