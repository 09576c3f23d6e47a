"""Lines of a recording as a person or a tool reads them: what each is, what it answers, what it says of a title.

Made for lines of any backend, and without what a turn needs to be translated: a line that nobody knows
still has a kind, a name and a few words.
"""
