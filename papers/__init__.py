"""The papers' experiments, made again on the public API; in the repository, not in the wheel."""
