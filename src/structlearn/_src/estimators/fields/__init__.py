"""Hinge-loss fields: rules, or forms given as arrays."""
