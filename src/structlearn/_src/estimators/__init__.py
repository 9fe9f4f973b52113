"""Fit, predict, score: estimators in the manner of scikit-learn."""
