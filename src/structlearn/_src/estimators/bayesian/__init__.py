"""Infinite mixtures and hidden Markov models, sampled."""
