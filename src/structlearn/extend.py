"""Tools for adding inference methods, readers or models; `docs/extending.md` shows how."""

from structlearn._src.estimators.check import check_structured_estimator
from structlearn._src.estimators.storage import Family
from structlearn._src.estimators.structured.labeler import Labeler
from structlearn._src.estimators.structured.read_graphs import GraphReader
from structlearn._src.files.codec import Codec
from structlearn._src.inference.base import Inferer, Result
from structlearn._src.inference.pick import METHODS
from structlearn._src.model.design import PairwiseDesign
from structlearn._src.model.model import GraphData

__all__ = [
    "METHODS", "Codec", "Family", "GraphData", "GraphReader", "Inferer", "Labeler",
    "PairwiseDesign", "Result", "check_structured_estimator",
]  # fmt: skip
