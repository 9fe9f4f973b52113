"""Recordings and generators that only the experiments need."""
