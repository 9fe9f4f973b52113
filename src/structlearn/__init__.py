"""Structured prediction when part of the answer is hidden.

Public names load on first use, so that ``import structlearn`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from structlearn._version import __version__

if TYPE_CHECKING:
    from structlearn.common.errors import StructlearnError
    from structlearn.data.columns import read_columns
    from structlearn.data.template import parse_template
    from structlearn.estimators.check import check_structured_estimator
    from structlearn.estimators.classifier import SequenceClassifier
    from structlearn.estimators.graph import GraphLabeler
    from structlearn.estimators.grid import GridLabeler
    from structlearn.estimators.hinge_field import HingeField
    from structlearn.estimators.infinite_hmm import InfiniteHMM
    from structlearn.estimators.infinite_svm import InfiniteSVM
    from structlearn.estimators.max_margin_hmm import MaxMarginHMM
    from structlearn.estimators.multiclass import MulticlassClassifier
    from structlearn.estimators.persist import load, save
    from structlearn.estimators.rules import RuleModel
    from structlearn.estimators.sequence import SequenceLabeler
    from structlearn.graph.build import FactorGraph
    from structlearn.graph.exchange import from_networkx, to_networkx
    from structlearn.graph.shapes import chain, grid, hidden_chain, hidden_grid, pairwise, tree
    from structlearn.graph.uai import read_uai, write_uai
    from structlearn.inference.base import Answer
    from structlearn.inference.front import infer, infer_many
    from structlearn.objective.dominance import alpha_bound
    from structlearn.report.beliefs import ChainDisplay, GridDisplay
    from structlearn.report.curves import ConvergenceDisplay, DominanceDisplay, HistoryDisplay
    from structlearn.report.weights import TransitionDisplay
    from structlearn.solve.checkpoint import Checkpoint

_HOME = {
    "Answer": "structlearn.inference.base",
    "ChainDisplay": "structlearn.report.beliefs",
    "Checkpoint": "structlearn.solve.checkpoint",
    "ConvergenceDisplay": "structlearn.report.curves",
    "DominanceDisplay": "structlearn.report.curves",
    "FactorGraph": "structlearn.graph.build",
    "GraphLabeler": "structlearn.estimators.graph",
    "GridDisplay": "structlearn.report.beliefs",
    "GridLabeler": "structlearn.estimators.grid",
    "HingeField": "structlearn.estimators.hinge_field",
    "HistoryDisplay": "structlearn.report.curves",
    "InfiniteHMM": "structlearn.estimators.infinite_hmm",
    "InfiniteSVM": "structlearn.estimators.infinite_svm",
    "MaxMarginHMM": "structlearn.estimators.max_margin_hmm",
    "MulticlassClassifier": "structlearn.estimators.multiclass",
    "RuleModel": "structlearn.estimators.rules",
    "SequenceClassifier": "structlearn.estimators.classifier",
    "SequenceLabeler": "structlearn.estimators.sequence",
    "StructlearnError": "structlearn.common.errors",
    "TransitionDisplay": "structlearn.report.weights",
    "alpha_bound": "structlearn.objective.dominance",
    "chain": "structlearn.graph.shapes",
    "check_structured_estimator": "structlearn.estimators.check",
    "from_networkx": "structlearn.graph.exchange",
    "grid": "structlearn.graph.shapes",
    "hidden_chain": "structlearn.graph.shapes",
    "hidden_grid": "structlearn.graph.shapes",
    "infer": "structlearn.inference.front",
    "infer_many": "structlearn.inference.front",
    "load": "structlearn.estimators.persist",
    "pairwise": "structlearn.graph.shapes",
    "parse_template": "structlearn.data.template",
    "read_columns": "structlearn.data.columns",
    "read_uai": "structlearn.graph.uai",
    "save": "structlearn.estimators.persist",
    "to_networkx": "structlearn.graph.exchange",
    "tree": "structlearn.graph.shapes",
    "write_uai": "structlearn.graph.uai",
}

__all__ = [
    "Answer",
    "ChainDisplay",
    "Checkpoint",
    "ConvergenceDisplay",
    "DominanceDisplay",
    "FactorGraph",
    "GraphLabeler",
    "GridDisplay",
    "GridLabeler",
    "HingeField",
    "HistoryDisplay",
    "InfiniteHMM",
    "InfiniteSVM",
    "MaxMarginHMM",
    "MulticlassClassifier",
    "RuleModel",
    "SequenceClassifier",
    "SequenceLabeler",
    "StructlearnError",
    "TransitionDisplay",
    "__version__",
    "alpha_bound",
    "chain",
    "check_structured_estimator",
    "from_networkx",
    "grid",
    "hidden_chain",
    "hidden_grid",
    "infer",
    "infer_many",
    "load",
    "pairwise",
    "parse_template",
    "read_columns",
    "read_uai",
    "save",
    "to_networkx",
    "tree",
    "write_uai",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'structlearn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
