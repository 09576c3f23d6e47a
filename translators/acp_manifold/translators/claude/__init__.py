"""Claude Code's wire and transcripts: frames and records to updates, prompts and answers the other way."""
