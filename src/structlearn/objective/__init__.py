"""How wrong weights are: task costs, the two worlds, losses, penalties."""
