"""Entry points of installed distributions, read without importlib.metadata.

That module costs an editor 20 ms at each start (CPython 3.11: it imports email, zipfile and
csv), for the answer to "what stands in `entry_points.txt` below a heading". The files' format is
the packaging specification's: an INI section for a group, `name = module:attribute` for a row.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from acp_manifold.translators.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Plugin(NamedTuple):
    """One entry point."""

    name: str
    target: str
    """`module:attribute`."""

    def load(self) -> object:
        """Import the module and give the attribute.

        Raises:
            ImportError: The module can't be imported.
            AttributeError: It has no such attribute.
        """
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module.strip()), attribute.strip())


def plugins(group: str) -> dict[str, Plugin]:
    """Every entry point of a group, by name; of two with one name the first on `sys.path` counts."""
    found: dict[str, Plugin] = {}
    for folder in dict.fromkeys(sys.path):
        for text in _entry_point_files(folder, group):
            for plugin in _section(text, group):
                found.setdefault(plugin.name, plugin)
    return found


def _entry_point_files(folder: str, group: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return
    for name in names:
        if not name.endswith((".dist-info", ".egg-info")):
            continue
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        if f"[{group}]" in text:
            yield text


def _section(text: str, group: str) -> Iterator[Plugin]:
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            # What follows in brackets names extras, which say nothing about where the object is.
            yield Plugin(name.strip(), target.partition("[")[0].strip())
