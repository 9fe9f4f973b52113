"""How do we draw from a posterior? One runner, its sweeps and moves."""
