"""Structured prediction when part of the answer is hidden.

Public names load on first use, so that ``import structlearn`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from structlearn._version import __version__

if TYPE_CHECKING:
    from structlearn._src.common.errors import StructlearnError
    from structlearn._src.display.beliefs import ChainDisplay, GridDisplay
    from structlearn._src.display.curves import ConvergenceDisplay, DominanceDisplay, HistoryDisplay
    from structlearn._src.display.weights import TransitionDisplay
    from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
    from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
    from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
    from structlearn._src.estimators.check import check_structured_estimator
    from structlearn._src.estimators.fields.hinge_field import HingeField
    from structlearn._src.estimators.fields.rule_model import RuleModel
    from structlearn._src.estimators.storage import load, save
    from structlearn._src.estimators.structured.classifier import SequenceClassifier
    from structlearn._src.estimators.structured.graph import GraphLabeler
    from structlearn._src.estimators.structured.grid import GridLabeler
    from structlearn._src.estimators.structured.multiclass import MulticlassClassifier
    from structlearn._src.estimators.structured.sequence import SequenceLabeler
    from structlearn._src.files.uai import read_uai, write_uai
    from structlearn._src.graph.build import FactorGraph
    from structlearn._src.graph.exchange import from_networkx, to_networkx
    from structlearn._src.graph.shapes import chain, grid, hidden_chain, hidden_grid, pairwise, tree
    from structlearn._src.inference.base import Answer
    from structlearn._src.inference.front import infer, infer_many
    from structlearn._src.learn.dominance import alpha_bound
    from structlearn._src.solve.checkpoint import Checkpoint
    from structlearn._src.text.columns import read_columns
    from structlearn._src.text.template import parse_template

_HOME = {
    "Answer": "structlearn._src.inference.base",
    "ChainDisplay": "structlearn._src.display.beliefs",
    "Checkpoint": "structlearn._src.solve.checkpoint",
    "ConvergenceDisplay": "structlearn._src.display.curves",
    "DominanceDisplay": "structlearn._src.display.curves",
    "FactorGraph": "structlearn._src.graph.build",
    "GraphLabeler": "structlearn._src.estimators.structured.graph",
    "GridDisplay": "structlearn._src.display.beliefs",
    "GridLabeler": "structlearn._src.estimators.structured.grid",
    "HingeField": "structlearn._src.estimators.fields.hinge_field",
    "HistoryDisplay": "structlearn._src.display.curves",
    "InfiniteHMM": "structlearn._src.estimators.bayesian.infinite_hmm",
    "InfiniteSVM": "structlearn._src.estimators.bayesian.infinite_svm",
    "MaxMarginHMM": "structlearn._src.estimators.bayesian.max_margin_hmm",
    "MulticlassClassifier": "structlearn._src.estimators.structured.multiclass",
    "RuleModel": "structlearn._src.estimators.fields.rule_model",
    "SequenceClassifier": "structlearn._src.estimators.structured.classifier",
    "SequenceLabeler": "structlearn._src.estimators.structured.sequence",
    "StructlearnError": "structlearn._src.common.errors",
    "TransitionDisplay": "structlearn._src.display.weights",
    "alpha_bound": "structlearn._src.learn.dominance",
    "chain": "structlearn._src.graph.shapes",
    "check_structured_estimator": "structlearn._src.estimators.check",
    "from_networkx": "structlearn._src.graph.exchange",
    "grid": "structlearn._src.graph.shapes",
    "hidden_chain": "structlearn._src.graph.shapes",
    "hidden_grid": "structlearn._src.graph.shapes",
    "infer": "structlearn._src.inference.front",
    "infer_many": "structlearn._src.inference.front",
    "load": "structlearn._src.estimators.storage",
    "pairwise": "structlearn._src.graph.shapes",
    "parse_template": "structlearn._src.text.template",
    "read_columns": "structlearn._src.text.columns",
    "read_uai": "structlearn._src.files.uai",
    "save": "structlearn._src.estimators.storage",
    "to_networkx": "structlearn._src.graph.exchange",
    "tree": "structlearn._src.graph.shapes",
    "write_uai": "structlearn._src.files.uai",
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
