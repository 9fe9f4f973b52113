"""How do we find better weights? One loop, its solvers and drivers."""
