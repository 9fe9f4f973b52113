"""Scores for predicted sequences, in addition to those of scikit-learn."""

from structlearn._src.metrics.chunks import chunk_scores, scorer

__all__ = ["chunk_scores", "scorer"]
