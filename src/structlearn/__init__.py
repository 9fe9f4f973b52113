"""Structured prediction when part of the answer is hidden.

Public names load on first use, so that ``import structlearn`` stays cheap. What is not needed every
day lies behind doors of its own: `structlearn.solvers`, `structlearn.losses`, `structlearn.rules`,
`structlearn.fields`, `structlearn.metrics`, `structlearn.datasets`, `structlearn.uai`,
`structlearn.errors` and, for those who add to the library, `structlearn.extend`. Everything in
`structlearn._src` is private.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from structlearn._version import __version__ as __version__

if TYPE_CHECKING:
    from structlearn import datasets as datasets
    from structlearn import errors as errors
    from structlearn import extend as extend
    from structlearn import fields as fields
    from structlearn import losses as losses
    from structlearn import metrics as metrics
    from structlearn import rules as rules
    from structlearn import solvers as solvers
    from structlearn import uai as uai
    from structlearn._src.common.errors import StructlearnError as StructlearnError
    from structlearn._src.display.beliefs import ChainDisplay as ChainDisplay
    from structlearn._src.display.beliefs import GridDisplay as GridDisplay
    from structlearn._src.display.curves import ConvergenceDisplay as ConvergenceDisplay
    from structlearn._src.display.curves import DominanceDisplay as DominanceDisplay
    from structlearn._src.display.curves import HistoryDisplay as HistoryDisplay
    from structlearn._src.display.weights import TransitionDisplay as TransitionDisplay
    from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM as InfiniteHMM
    from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM as InfiniteSVM
    from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM as MaxMarginHMM
    from structlearn._src.estimators.check import (
        check_structured_estimator as check_structured_estimator,
    )
    from structlearn._src.estimators.fields.hinge_field import HingeField as HingeField
    from structlearn._src.estimators.fields.rule_model import RuleModel as RuleModel
    from structlearn._src.estimators.storage import load as load
    from structlearn._src.estimators.storage import save as save
    from structlearn._src.estimators.structured.classifier import (
        SequenceClassifier as SequenceClassifier,
    )
    from structlearn._src.estimators.structured.graph import GraphLabeler as GraphLabeler
    from structlearn._src.estimators.structured.grid import GridLabeler as GridLabeler
    from structlearn._src.estimators.structured.multiclass import (
        MulticlassClassifier as MulticlassClassifier,
    )
    from structlearn._src.estimators.structured.sequence import SequenceLabeler as SequenceLabeler
    from structlearn._src.files.uai import read_uai as read_uai
    from structlearn._src.files.uai import write_uai as write_uai
    from structlearn._src.graph.build import FactorGraph as FactorGraph
    from structlearn._src.graph.exchange import from_networkx as from_networkx
    from structlearn._src.graph.exchange import to_networkx as to_networkx
    from structlearn._src.graph.shapes import chain as chain
    from structlearn._src.graph.shapes import chain_edges as chain_edges
    from structlearn._src.graph.shapes import grid as grid
    from structlearn._src.graph.shapes import grid_edges as grid_edges
    from structlearn._src.graph.shapes import hidden_chain as hidden_chain
    from structlearn._src.graph.shapes import hidden_grid as hidden_grid
    from structlearn._src.graph.shapes import pairwise as pairwise
    from structlearn._src.graph.shapes import tree as tree
    from structlearn._src.inference.base import Answer as Answer
    from structlearn._src.inference.front import infer as infer
    from structlearn._src.inference.front import infer_many as infer_many
    from structlearn._src.learn.dominance import alpha_bound as alpha_bound
    from structlearn._src.solve.checkpoint import Checkpoint as Checkpoint
    from structlearn._src.text.columns import Columns as Columns
    from structlearn._src.text.columns import read_columns as read_columns
    from structlearn._src.text.template import parse_template as parse_template
    from structlearn._src.text.template import read_template as read_template

#: Public names by the modules that they are defined in.
_NAMES = {
    "common.errors": ["StructlearnError"],
    "display.beliefs": ["ChainDisplay", "GridDisplay"],
    "display.curves": ["ConvergenceDisplay", "DominanceDisplay", "HistoryDisplay"],
    "display.weights": ["TransitionDisplay"],
    "estimators.bayesian.infinite_hmm": ["InfiniteHMM"],
    "estimators.bayesian.infinite_svm": ["InfiniteSVM"],
    "estimators.bayesian.max_margin_hmm": ["MaxMarginHMM"],
    "estimators.check": ["check_structured_estimator"],
    "estimators.fields.hinge_field": ["HingeField"],
    "estimators.fields.rule_model": ["RuleModel"],
    "estimators.storage": ["load", "save"],
    "estimators.structured.classifier": ["SequenceClassifier"],
    "estimators.structured.graph": ["GraphLabeler"],
    "estimators.structured.grid": ["GridLabeler"],
    "estimators.structured.multiclass": ["MulticlassClassifier"],
    "estimators.structured.sequence": ["SequenceLabeler"],
    "files.uai": ["read_uai", "write_uai"],
    "graph.build": ["FactorGraph"],
    "graph.exchange": ["from_networkx", "to_networkx"],
    "graph.shapes": [
        "chain",
        "chain_edges",
        "grid",
        "grid_edges",
        "hidden_chain",
        "hidden_grid",
        "pairwise",
        "tree",
    ],
    "inference.base": ["Answer"],
    "inference.front": ["infer", "infer_many"],
    "learn.dominance": ["alpha_bound"],
    "solve.checkpoint": ["Checkpoint"],
    "text.columns": ["Columns", "read_columns"],
    "text.template": ["parse_template", "read_template"],
}
_HOME = {name: f"structlearn._src.{module}" for module, names in _NAMES.items() for name in names}
_DOORS = ("datasets", "errors", "extend", "fields", "losses", "metrics", "rules", "solvers", "uai")

__all__ = sorted([*_HOME, *_DOORS, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        return importlib.import_module(f"structlearn.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'structlearn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
