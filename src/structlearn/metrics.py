"""How good predictions are: labels, chunks, and values of atoms."""

from structlearn._src.metrics.accuracy import sequence_accuracy, token_accuracy
from structlearn._src.metrics.chunks import ChunkScores, chunk_scores
from structlearn._src.metrics.ranking import (
    auroc,
    average_precision,
    binary_accuracy,
    f1,
    mean_squared_error,
)

__all__ = [
    "ChunkScores", "auroc", "average_precision", "binary_accuracy", "chunk_scores", "f1",
    "mean_squared_error", "sequence_accuracy", "token_accuracy",
]  # fmt: skip
