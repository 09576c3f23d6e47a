"""Puts a recording and the page's own parts into one HTML file.

What messages hold reaches the page as data alone: JSON in a script element that is not run, with every
`<` escaped, so that no text can end it. The policy of the page lets nothing run but its own script and
nothing be fetched from anywhere, and its script can make no HTML out of text (`require-trusted-types-for`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from acp_manifold.translators.narrow import JsonObject

from .data import json_text

SCRIPTS = ("model.js", "layout.js", "tree.js", "rows.js", "page.js")
"""The parts of the page's script, in the order in which they are joined into one."""

_PACKAGE = __name__.rpartition(".")[0]
_PLACE = re.compile(r"%(policy|style|recording|script)%")


def page(recording: JsonObject) -> str:
    """The whole page over what `page_data` made of a recording."""
    style = _part("page.css")
    script = '"use strict";\n' + "".join(_part(name) for name in SCRIPTS)
    parts = {
        "policy": _policy(style, script),
        "style": style,
        "script": script,
        "recording": json_text(recording).replace("<", "\\u003c"),
    }
    # In one pass: what one part holds is never looked at as a place for another.
    return _PLACE.sub(lambda place: parts[place[1]], _part("page.html"))


def _part(name: str) -> str:
    return files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    rules = {
        "default-src": "'none'",
        "style-src": _only(style),
        "script-src": _only(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _only(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
