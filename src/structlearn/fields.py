"""Hinge-loss fields on their own: linear forms over values in [0, 1], and their minimisers."""

from structlearn._src.field.admm import solve_map
from structlearn._src.field.hinges import Hinges

__all__ = ["Hinges", "solve_map"]
