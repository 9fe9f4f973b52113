"""Find better weights: one loop, many steps."""
