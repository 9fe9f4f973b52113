"""Hinge-loss fields: steps of ADMM and of Newton."""
