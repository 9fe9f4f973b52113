"""How is it computed fast? Compiled loops over plain arrays, nothing else."""
