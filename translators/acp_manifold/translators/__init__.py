"""Pure translation between the wire of the CLIs, the canonical updates and the Agent Client Protocol.

No I/O, no clock, no randomness, no logging: ids and times are arguments. Recordings are
replayed through exactly this code.
"""
