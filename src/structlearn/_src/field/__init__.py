"""Hinge-loss fields: forms, ADMM, certified MAP, surrogates."""
