"""PSL's language by itself: rules as text, atoms in tables, groundings, explanations."""

from structlearn._src.rules.check import check
from structlearn._src.rules.explain import Pull, explain
from structlearn._src.rules.ground import Grounding, ground
from structlearn._src.rules.parse import parse, parse_rule
from structlearn._src.rules.program import ProgramFile, read_program
from structlearn._src.rules.syntax import Rule
from structlearn._src.rules.tables import Tables
from structlearn._src.rules.write import write

__all__ = [
    "Grounding", "ProgramFile", "Pull", "Rule", "Tables", "check", "explain", "ground", "parse",
    "parse_rule", "read_program", "write",
]  # fmt: skip
