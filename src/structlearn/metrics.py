"""How good predictions of sequences are; for anything else there is scikit-learn."""

from structlearn._src.metrics.chunks import chunk_scores, scorer

__all__ = ["chunk_scores", "scorer"]
