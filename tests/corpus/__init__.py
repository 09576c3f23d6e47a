"""The corpus of recordings: what happens in each, how they are made, and what a client hears of them in a replay."""
