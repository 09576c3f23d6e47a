"""The first line an app-server is sent: who we are, and what we never want to hear.

Apart from the rest because it is sent as soon as the process is started, which may be before
there is an event loop: codex-cli 0.163.0 takes 15 ms for its answer.
"""

from __future__ import annotations

import json

from acp_manifold.bridge.version import __version__

NEVER_USED = (
    "app/list/updated",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "remoteControl/status/changed",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/readState/changed",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
)
"""Notifications we ask not to get. They are a sixth of the bytes of a short text turn, and two thirds of a turn with
five patches, whose `turn/diff/updated` repeats the whole turn's diff after each (codex-cli 0.163.0)."""

GREETING_ID = 1
"""The id of the greeting, as of the first request there is."""

GREETING = json.dumps(
    {
        "id": GREETING_ID,
        "method": "initialize",
        "params": {
            "clientInfo": {"name": "acp-manifold", "title": "acp-manifold", "version": __version__},
            "capabilities": {
                "experimentalApi": True,
                "requestAttestation": False,
                "optOutNotificationMethods": list(NEVER_USED),
            },
        },
    }
).encode()
"""The `initialize` request, a line without its end."""
