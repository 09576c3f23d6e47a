"""Recordings: files with every line that crossed between a client, the bridge and the CLIs, scrubbed, replayable.

`format` says what stands in one, `reader` and `writer` turn files into it and back, `migrate` brings older ones up
to date, `scrub` takes out what is nobody else's business, `recorder` listens while the agent runs. Nothing of it is
imported by an agent that neither records nor replays.
"""
