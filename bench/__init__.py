"""Measures what users of an ACP agent feel: ours beside the official adapters, in turn, on the same work."""
