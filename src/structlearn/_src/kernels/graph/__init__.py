"""Any factor graph: wiring, messages, elimination, single flips."""
