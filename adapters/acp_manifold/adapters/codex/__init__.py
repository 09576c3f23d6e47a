"""The backend for Codex: one `codex app-server` a hub, all threads in it (codex-cli 0.163.0 and 0.171.0)."""
