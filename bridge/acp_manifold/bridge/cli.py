"""The entry point: straight to serving when an editor starts us bare, else to the command line.

An editor waits for the answer to `initialize`; what only the command line needs is not
imported on its way.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run `acp-manifold`; ends the process with its exit status."""
    if len(sys.argv) == 1 and not sys.stdin.isatty():
        from .serve import serve

        sys.exit(serve())
    from .commands import acp_manifold

    acp_manifold(prog_name="acp-manifold")
