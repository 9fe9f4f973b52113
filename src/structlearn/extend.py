"""What those need who add inference methods, readers or models; `docs/extending.md` shows how."""

from structlearn._src.estimators.storage import Family
from structlearn._src.estimators.structured.labeler import Labeler
from structlearn._src.estimators.structured.read_graphs import GraphReader
from structlearn._src.files.codec import Codec
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Inferer, Options, Problem, Result
from structlearn._src.inference.icm import unary_labels
from structlearn._src.inference.names import Query
from structlearn._src.inference.pick import METHODS
from structlearn._src.learn.world import World
from structlearn._src.model.graph_data import GraphData
from structlearn._src.model.pairwise import PairwiseDesign

__all__ = [
    "METHODS", "Codec", "Family", "GraphData", "GraphReader", "Inferer", "Labeler", "Options",
    "PairwiseDesign", "Problem", "Query", "Result", "Wiring", "World", "unary_labels",
]  # fmt: skip
