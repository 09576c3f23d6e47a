"""A scripted language model on loopback: what the real CLIs talk to in the demo, the live tests and the bench.

It speaks the Anthropic Messages API and the OpenAI Responses API as far as Claude Code 2.1.332 and
codex-cli 0.163.0 use them. The prompt itself is the script (see `script`). No account, no network.
"""

from .control import Gate, Request, Titles
from .server import Model, run_model

__all__ = ["Gate", "Model", "Request", "Titles", "run_model"]
