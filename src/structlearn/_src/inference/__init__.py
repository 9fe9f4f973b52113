"""What follows from the potentials? Exact and approximate inference behind one front door."""
