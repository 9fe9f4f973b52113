"""Random draws: densities, max-margin weights, mixtures."""
