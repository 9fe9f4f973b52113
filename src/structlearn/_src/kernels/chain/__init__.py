"""Chains: forward-backward, best paths, draws, and solvers that visit one sequence at a time."""
