"""Potentials to answers: exact and approximate inference behind one front door."""
