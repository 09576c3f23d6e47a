"""The version, as a constant: reading it from the installed metadata would cost an editor 10 ms at each start."""

__version__ = "0.1.0"
