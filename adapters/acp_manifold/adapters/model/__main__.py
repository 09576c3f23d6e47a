"""`python -m acp_manifold.adapters.model [PORT]`: the scripted model by itself, until it is stopped.

Prints its address, one line, once it listens; an error says why it can't.
"""

from __future__ import annotations

import sys

import anyio

from .server import run_model


async def _serve(port: int) -> None:
    async with run_model(port, keep_requests=False) as model:
        sys.stdout.write(f"{model.url}\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


def main() -> None:
    """Serve on the port named on the command line, or on a free one."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    try:
        anyio.run(_serve, port)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"The scripted model can't listen on port {port}: {error}")


if __name__ == "__main__":
    main()
