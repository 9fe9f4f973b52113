"""How wrong are these weights? Worlds, the objective, losses, task costs, penalties."""
