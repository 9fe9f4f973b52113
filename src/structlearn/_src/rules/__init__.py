"""What do rules say about these tables? PSL's language, grounding in DuckDB, explanations."""
