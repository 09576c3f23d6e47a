"""Codex app-server lines to canonical updates, and what we send it. Shapes: codex-cli 0.163.0 and 0.171.0."""
