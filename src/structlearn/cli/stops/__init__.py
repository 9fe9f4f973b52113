"""The stops of ``structlearn demo``, one module each; `visit` makes the stop."""
