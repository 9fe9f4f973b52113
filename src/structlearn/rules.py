"""The rule language of PSL on its own; `structlearn.RuleModel` runs it."""

from structlearn._src.rules.parse import parse
from structlearn._src.rules.program import read_program

__all__ = ["parse", "read_program"]
