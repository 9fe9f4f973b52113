"""Discrete structures: sequences, grids, graphs, single labels."""
