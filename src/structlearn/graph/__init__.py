"""Who interacts with whom: variables, factors, builders and the frozen wiring."""
