"""The form in which Claude Code keeps a title.

Whatever it writes itself passes a filter (measured over all of Unicode, 2.1.332): invisible characters
become a space, and the title is cut at 200 code points. Of what `titles.normalise` leaves, that
changes the zero-width joiner alone. A title that others wrote in another form is rewritten by the
CLI when it next has the session, and would then look like a rename.
"""

from __future__ import annotations

from acp_manifold.translators.claude.archive import visible
from acp_manifold.translators.titles import normalise

_ZWJ = "\u200d"


def stored_form(title: str) -> str:
    """The title as Claude Code keeps it, perhaps empty; a form that its filter leaves as it is."""
    return normalise(title.replace(_ZWJ, " "))


def given_form(title: str) -> str:
    """The form in which a title of a client is stored: none puts its session into another adapter's archive."""
    return visible(stored_form(title))
