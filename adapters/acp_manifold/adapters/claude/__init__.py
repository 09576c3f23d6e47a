"""Claude Code as a backend: one CLI process a session, over stream-json, with its own store of transcripts."""

from acp_manifold.adapters.claude.backend import ClaudeBackend

__all__ = ["ClaudeBackend"]
