"""All exceptions and warnings of the library."""

from structlearn._src.common.errors import (
    ArgumentError,
    AtomError,
    CacheWarning,
    DataNotFoundError,
    EvidenceError,
    FormatError,
    GraphError,
    GreedyCoefficientWarning,
    ImpossibleEvidenceError,
    InfeasibleError,
    PotentialError,
    QueryError,
    RuleError,
    SilentRuleWarning,
    StructlearnError,
    TooWideError,
    UncertifiedWarning,
    UnreachedAtomWarning,
)

__all__ = [
    "ArgumentError", "AtomError", "CacheWarning", "DataNotFoundError", "EvidenceError",
    "FormatError", "GraphError", "GreedyCoefficientWarning", "ImpossibleEvidenceError",
    "InfeasibleError", "PotentialError", "QueryError", "RuleError", "SilentRuleWarning",
    "StructlearnError", "TooWideError", "UncertifiedWarning", "UnreachedAtomWarning",
]  # fmt: skip
