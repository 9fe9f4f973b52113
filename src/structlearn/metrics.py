"""How good predictions of sequences are; for anything else there is scikit-learn."""

from structlearn._src.metrics.chunks import chunk_scores
from structlearn._src.metrics.scorer import scorer

__all__ = ["chunk_scores", "scorer"]
