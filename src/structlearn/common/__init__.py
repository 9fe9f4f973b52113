"""Errors, argument checks and random streams: nothing of ours lies below this."""
