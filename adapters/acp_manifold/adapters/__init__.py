"""The backends: each package knows one CLI, how to find it, speak to it and read its store."""
