"""One module for each experiment, with a function `run(settings)`."""
