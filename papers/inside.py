"""The private names of the library that experiments use, each for want of a public one.

Estimators choose inference, costs and the roles of variables themselves. The papers prescribe them:
which variables are summed over in new examples, how many sweeps messages take, what a world is. So
their experiments put objectives together from parts, as estimators do inside, and that has no
public names yet: they would have to stay as they are. A test lists all other places in `papers`
that use private names.
"""

from __future__ import annotations

# Fields and rules: paired-dual learning is compared step of ADMM by step of ADMM.
from structlearn._src.field.admm import Consensus
from structlearn._src.field.examples import make_field_examples
from structlearn._src.field.hinges import HINGE

# Graphs and chains whose hidden variables are hidden in new examples, too.
from structlearn._src.graph.batch import Graphs, Sequences, assemble
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.inference import decode
from structlearn._src.inference.base import Options
from structlearn._src.inference.chain_batch import Chains

# Objectives with a loss, a cost, a penalty and an effort of inference of their own.
from structlearn._src.learn.dominance import Dominance, dominance
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.loss import NonNegative, make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.metrics.chunks import ChunkScores
from structlearn._src.model.model import Examples, LinearModel, Tables
from structlearn._src.model.term import Features, LinearTerm, Sparse, TableTerm
from structlearn._src.rules.ground import Grounding, ground
from structlearn._src.rules.syntax import Program
from structlearn._src.rules.tables import Tables as AtomTables

# Samplers that begin at true states, or are held there.
from structlearn._src.sample.hdp import first_value
from structlearn._src.sample.hmm import HmmInfo, HmmState, draw_given_paths, start
from structlearn._src.sample.mixture import MixtureInfo, MixtureSampler, MixtureState
from structlearn._src.solve.loop import Fit

# Sentences that are split and joined, and their attributes.
from structlearn._src.text.attributes import Attributes, fit_transform
from structlearn._src.text.columns import Columns, parse_columns
from structlearn._src.text.rows import Rows, from_csr
from structlearn._src.text.strings import Strings
from structlearn._src.text.template import parse_template

__all__ = [
    "HIDDEN", "HINGE", "OUTPUT", "AtomTables", "Attributes", "Chains", "ChunkScores", "Columns",
    "Consensus", "Dominance", "Examples", "Features", "FieldObjective", "Fit", "Graphs",
    "Grounding", "HmmInfo", "HmmState", "InferenceSettings", "LinearModel", "LinearTerm",
    "MixtureInfo", "MixtureSampler", "MixtureState", "NonNegative", "Options", "Program", "Rows",
    "Sequences", "Sparse", "Strings", "StructuredObjective", "TableTerm", "Tables", "assemble",
    "decode", "dominance", "draw_given_paths", "first_value", "fit_transform", "from_csr", "ground",
    "make_cost", "make_field_examples", "make_loss", "parse_columns", "parse_template", "start",
]  # fmt: skip
