"""Claude Code's interactive program as a backend: run in a terminal, typed into, read by transcript and hooks."""

from acp_manifold.adapters.claude_tui.backend import ClaudeTuiBackend

__all__ = ["ClaudeTuiBackend"]
