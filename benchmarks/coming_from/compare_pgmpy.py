"""One Bayesian network by pgmpy and by structlearn: marginals, evidence, best assignment.

Run ``pip install pgmpy``, then ``python benchmarks/coming_from/compare_pgmpy.py``.
"""

from __future__ import annotations

import numpy as np
from comparison import Figure, conclude
from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

from structlearn import FactorGraph, infer

#: variable: (states, parents, table with one row per state and one column per parents' states)
TABLES = {
    "difficulty": (2, [], [[0.6], [0.4]]),
    "talent": (2, [], [[0.7], [0.3]]),
    "grade": (
        3,
        ["talent", "difficulty"],
        [[0.3, 0.05, 0.9, 0.5], [0.4, 0.25, 0.08, 0.3], [0.3, 0.7, 0.02, 0.2]],
    ),
    "letter": (2, ["grade"], [[0.1, 0.4, 0.99], [0.9, 0.6, 0.01]]),
}


def theirs() -> DiscreteBayesianNetwork:
    edges = [(parent, name) for name, (_, parents, _) in TABLES.items() for parent in parents]
    network = DiscreteBayesianNetwork(edges)
    for name, (states, parents, table) in TABLES.items():
        sizes = [TABLES[parent][0] for parent in parents]
        network.add_cpds(TabularCPD(name, states, table, evidence=parents, evidence_card=sizes))
    return network


def ours() -> FactorGraph:
    graph = FactorGraph()
    for name, (states, _, _) in TABLES.items():
        graph.add_variable(name, states=states)
    for name, (states, parents, table) in TABLES.items():
        shape = [states, *(TABLES[parent][0] for parent in parents)]
        graph.add_factor([name, *parents], np.log(table).reshape(shape))
    return graph


def compare() -> list[Figure]:
    network = VariableElimination(theirs())
    graph = ours()
    rows = []
    for evidence in ({}, {"letter": 1}):
        asked = [name for name in TABLES if name not in evidence]
        answer = infer(graph, "marginals", evidence=evidence)
        there = [network.query([n], evidence, show_progress=False).values for n in asked]
        here = [answer.marginals[name] for name in asked]
        apart = max(float(np.abs(a - b).max()) for a, b in zip(there, here, strict=True))
        given = f"given {evidence}" if evidence else "without evidence"
        rows.append(Figure(f"marginals {given}", 0.0, apart, 1e-12))
        best = network.map_query(asked, evidence, show_progress=False)
        found = infer(graph, "map", evidence=evidence).assignment
        equal = np.mean([best[name] == found[name] for name in asked])
        rows.append(Figure(f"MAP {given}, equal states", 1.0, float(equal), 0.0))
    value = infer(graph, "partition", evidence={"letter": 1}).value
    chance = network.query(["letter"], show_progress=False).values[1]
    return [*rows, Figure("probability of letter = 1", chance, float(np.exp(value)), 1e-12)]


if __name__ == "__main__":
    conclude("pgmpy", compare())
