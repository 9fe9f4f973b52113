"""From weights to potentials, and from marginals back to weights."""
