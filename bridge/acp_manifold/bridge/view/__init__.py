"""A recording as one HTML page, to be read by a person: it needs no network and runs nothing of what messages hold."""
