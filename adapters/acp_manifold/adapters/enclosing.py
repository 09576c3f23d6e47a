"""What a CLI leaves in the environment of the commands it runs: none of it is for a CLI that we start (case A01).

Somebody may start an editor, and with it us, from a session of either CLI. Inherited, its marks would
tie our sessions to that one, and hand its tokens to commands of strangers; so each CLI is started
without the marks of both.
"""

from __future__ import annotations

from collections.abc import Mapping

CLAUDE_MARKS = frozenset(
    {
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_AGENT_SDK_CLIENT_APP",
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_PARENT_SESSION_ID",
        "CLAUDE_CODE_REMOTE",
        "CLAUDE_CODE_REMOTE_SESSION_ID",
        "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SESSION_KIND",
        "CLAUDE_CODE_SESSION_NAME",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
    }
)
"""What Claude Code 2.1.332 sets for the commands it runs, and what hosts of it set."""

CODEX_MARKS = frozenset(
    {
        "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
        "CODEX_CI",
        "CODEX_PERMISSION_PROFILE",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
        "CODEX_VERSION",
    }
)
"""What codex-cli 0.163.0 sets for the commands it runs."""

_MARKS = CLAUDE_MARKS | CODEX_MARKS


def without_marks(environ: Mapping[str, str]) -> dict[str, str]:
    """A copy of an environment without the marks of an enclosing session, whichever CLI's it was."""
    return {name: value for name, value in environ.items() if name not in _MARKS}
