"""Hinge-loss fields by themselves: linear forms over values in [0, 1], and their best values."""

from structlearn._src.field.admm import HingeResult, solve_map
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE, Hinges

__all__ = ["AT_MOST", "EQUAL", "HINGE", "HingeResult", "Hinges", "solve_map"]
