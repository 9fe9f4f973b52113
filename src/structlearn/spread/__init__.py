"""Who computes it: the same work on one thread or many."""
