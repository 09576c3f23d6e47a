"""Agent Client Protocol: canonical updates to the wire, requests from the wire."""
