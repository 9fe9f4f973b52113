"""How good is a prediction? Accuracy, chunk scores, rankings."""
