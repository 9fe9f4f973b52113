"""How draws from a posterior are made: pure steps, and one runner for them."""
