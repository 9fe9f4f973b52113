"""The stops of ``structlearn demo``."""
