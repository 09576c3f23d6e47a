"""`python -m acp_manifold.bridge`: the same as the command `acp-manifold`."""

from .cli import main

main()
