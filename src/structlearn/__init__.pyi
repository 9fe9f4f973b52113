# Public names and where they are defined, each once: type checkers read this file, and so does
# `__init__.py`, which imports a name when it is first used.

from structlearn import datasets as datasets
from structlearn import errors as errors
from structlearn import extend as extend
from structlearn import fields as fields
from structlearn import losses as losses
from structlearn import metrics as metrics
from structlearn import rules as rules
from structlearn import solvers as solvers
from structlearn import torch as torch
from structlearn import uai as uai
from structlearn._src.common.errors import StructlearnError as StructlearnError
from structlearn._src.display.beliefs import ChainDisplay as ChainDisplay
from structlearn._src.display.beliefs import GridDisplay as GridDisplay
from structlearn._src.display.curves import ConvergenceDisplay as ConvergenceDisplay
from structlearn._src.display.curves import DominanceDisplay as DominanceDisplay
from structlearn._src.display.curves import HistoryDisplay as HistoryDisplay
from structlearn._src.display.report import report as report
from structlearn._src.display.weights import TransitionDisplay as TransitionDisplay
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM as InfiniteHMM
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM as InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM as MaxMarginHMM
from structlearn._src.estimators.fields.hinge_field import HingeField as HingeField
from structlearn._src.estimators.fields.rule_model import RuleModel as RuleModel
from structlearn._src.estimators.storage import load as load
from structlearn._src.estimators.storage import save as save
from structlearn._src.estimators.structured.classifier import (
    MulticlassClassifier as MulticlassClassifier,
)
from structlearn._src.estimators.structured.classifier import (
    SequenceClassifier as SequenceClassifier,
)
from structlearn._src.estimators.structured.graph import GraphLabeler as GraphLabeler
from structlearn._src.estimators.structured.graph import GridLabeler as GridLabeler
from structlearn._src.estimators.structured.sequence import SequenceLabeler as SequenceLabeler
from structlearn._src.estimators.structured.tagger import Tagger as Tagger
from structlearn._src.files.uai import read_uai as read_uai
from structlearn._src.files.uai import write_uai as write_uai
from structlearn._src.graph.build import FactorGraph as FactorGraph
from structlearn._src.graph.exchange import from_networkx as from_networkx
from structlearn._src.graph.exchange import to_networkx as to_networkx
from structlearn._src.graph.shapes import chain as chain
from structlearn._src.graph.shapes import grid as grid
from structlearn._src.graph.shapes import grid_edges as grid_edges
from structlearn._src.graph.shapes import hidden_chain as hidden_chain
from structlearn._src.graph.shapes import hidden_grid as hidden_grid
from structlearn._src.graph.shapes import pairwise as pairwise
from structlearn._src.graph.shapes import tree as tree
from structlearn._src.inference.base import Answer as Answer
from structlearn._src.inference.front import infer as infer
from structlearn._src.inference.front import infer_many as infer_many
from structlearn._src.places.on import on as on
from structlearn._src.solve.checkpoint import Checkpoint as Checkpoint
from structlearn._src.text.columns import read_columns as read_columns
from structlearn._src.text.partitions import ColumnFiles as ColumnFiles
from structlearn._version import __version__ as __version__
