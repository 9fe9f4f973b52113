"""Experiments of the papers, made again: one module each, with `run(settings)`."""
