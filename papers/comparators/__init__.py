"""Models that the papers compare with."""
