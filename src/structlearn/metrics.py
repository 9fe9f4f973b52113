"""How good predictions of sequences are; for anything else there is scikit-learn."""

from structlearn._src.metrics.accuracy import sequence_accuracy, token_accuracy
from structlearn._src.metrics.chunks import chunk_scores

__all__ = ["chunk_scores", "sequence_accuracy", "token_accuracy"]
