"""The multiplexer: one Agent Client Protocol agent over any number of backends. It names no CLI."""
