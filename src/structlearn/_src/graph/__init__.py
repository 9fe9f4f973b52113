"""Who interacts with whom? Variables, factors, builders and the frozen wiring; no weights."""
