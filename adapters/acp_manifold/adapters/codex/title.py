"""Generated titles: a model is asked in an ephemeral thread, as Codex' own TUI does it (codex-cli 0.171.0)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import anyio

from acp_manifold.bridge.errors import METHOD_NOT_FOUND, BackendGone, RemoteError
from acp_manifold.translators.auth import Endpoint
from acp_manifold.translators.codex.naming import SCHEMA, request_text, title_in
from acp_manifold.translators.codex.threads import TITLE_SOURCE
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import Notice

from .client import NoAnswer, RequestId
from .endpoint import thread_options
from .server import AppServer

logger = logging.getLogger(__name__)

GENERATION_LIMIT = 60.0
"""Seconds for a model to come up with a title."""


class _TitleThread:
    """The route of the ephemeral thread: keeps what the model says and waits for the end of the turn."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self.id = ""
        self.said = ""
        self.over = anyio.Event()

    def opened(self, result: JsonObject) -> None:
        """The thread is there; from now on its lines come here and nowhere else."""
        self.id = text(obj(result, "thread"), "id")
        self._server.routes[self.id] = self

    def notified(self, method: str, params: JsonObject) -> None:
        """A notification about the thread."""
        if method == "item/completed" and text(obj(params, "item"), "type") == "agentMessage":
            self.said = text(obj(params, "item"), "text")
        elif method in ("turn/completed", "thread/closed"):
            self.over.set()

    def asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """A request about the thread: there is nothing to consent to."""
        self._server.client.refuse(request_id, METHOD_NOT_FOUND, f"nobody here answers {method}")

    async def room(self) -> None:
        """Nobody is told of the thread, so nobody is behind."""

    def noticed(self, notice: Notice) -> None:
        """Nothing about a title is worth a notice."""

    def server_gone(self, reason: BackendGone) -> None:
        """The server ended."""
        self.over.set()


async def generate_title(
    server: AppServer,
    cwd: str,
    model: str | None,
    idle: Iterable[str],
    prompt_text: str,
    endpoint: Endpoint | None = None,
) -> str | None:
    """A title for a session that begins with `prompt_text`, or None if the model gave none.

    Args:
        server: The app-server.
        cwd: The session's directory, whose configuration holds.
        model: The session's model.
        idle: MCP servers of the person's configuration; without a word they would be started for this one question.
        prompt_text: What the person typed.
        endpoint: Where the session's model requests go; None: as Codex is configured.

    Raises:
        BackendGone: The server is gone.
    """
    thread = _TitleThread(server)
    params: JsonObject = {
        "cwd": cwd,
        "ephemeral": True,
        "environments": [],
        "threadSource": TITLE_SOURCE,
        "approvalPolicy": "never",
        "sandbox": "read-only",
    }
    if model is not None:
        params["model"] = model
    off: JsonObject = {name: {"enabled": False} for name in idle}
    config: JsonObject = {"mcp_servers": off} if off else {}
    if endpoint is not None:
        led = thread_options(endpoint)
        params["modelProvider"] = led["modelProvider"]
        config |= obj(led, "config")
    if config:
        params["config"] = config
    try:
        with anyio.move_on_after(GENERATION_LIMIT):
            await server.client.request("thread/start", params, taken=thread.opened)
            await server.client.request("turn/start", _turn(thread.id, prompt_text))
            await thread.over.wait()
    except (NoAnswer, RemoteError) as exc:
        logger.info("codex: no title could be generated: %s", exc.message)
    finally:
        if thread.id:
            server.routes.pop(thread.id, None)
            server.client.post("thread/unsubscribe", {"threadId": thread.id})
    return title_in(thread.said)


def _turn(thread_id: str, prompt_text: str) -> JsonObject:
    said: JsonObject = {"type": "text", "text": request_text(prompt_text), "text_elements": []}
    return {"threadId": thread_id, "input": [said], "outputSchema": SCHEMA}
