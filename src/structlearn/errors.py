"""All exceptions and warnings of the library."""

from structlearn._src.common.errors import (
    ArgumentError,
    AtomError,
    BrokenRuleWarning,
    BurnInWarning,
    CacheWarning,
    DataNotFoundError,
    EvidenceError,
    FeatureNameWarning,
    FormatError,
    GraphError,
    GreedyCoefficientWarning,
    IgnoredOptionWarning,
    ImpossibleEvidenceError,
    InfeasibleError,
    InferenceWarning,
    MixingWarning,
    PotentialError,
    QueryError,
    RepeatedRuleWarning,
    RuleError,
    SilentRuleWarning,
    StructlearnError,
    TooWideError,
    UncertifiedWarning,
    UnreachedAtomWarning,
    VanishedWeightsWarning,
)

__all__ = [
    "ArgumentError", "AtomError", "BrokenRuleWarning", "BurnInWarning", "CacheWarning",
    "DataNotFoundError", "EvidenceError", "FeatureNameWarning", "FormatError", "GraphError",
    "GreedyCoefficientWarning", "IgnoredOptionWarning", "ImpossibleEvidenceError",
    "InfeasibleError", "InferenceWarning", "MixingWarning", "PotentialError", "QueryError",
    "RepeatedRuleWarning", "RuleError", "SilentRuleWarning", "StructlearnError", "TooWideError",
    "UncertifiedWarning", "UnreachedAtomWarning", "VanishedWeightsWarning",
]  # fmt: skip
