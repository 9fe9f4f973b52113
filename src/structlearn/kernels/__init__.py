"""Compiled loops over plain arrays, nothing else."""
