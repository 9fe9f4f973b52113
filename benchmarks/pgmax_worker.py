"""Time PGMax's loopy sum-product on a pairwise model; runs in PGMax's own environment.

Usage: python pgmax_worker.py MODEL.npz SWEEPS REPEATS. Runs REPEATS times SWEEPS sweeps, one
after the other from zero messages, and prints one JSON object. The model holds `unary` (n,
states), `pair` (m, states, states) and `edges` (m, 2), all log potentials.
"""

import json
import sys
import time

import numpy as np
from pgmax import fgraph, fgroup, infer, vgroup

DAMPING = 0.5


def build(model):
    unary, pair, edges = model["unary"], model["pair"], model["edges"]
    variables = vgroup.NDVarArray(num_states=unary.shape[1], shape=(len(unary),))
    graph = fgraph.FactorGraph(variables)
    scopes = [[variables[int(i)], variables[int(j)]] for i, j in edges]
    graph.add_factors(
        fgroup.PairwiseFactorGroup(variables_for_factors=scopes, log_potential_matrix=pair)
    )
    return variables, infer.build_inferer(graph.bp_state, backend="bp")


def main(path, sweeps, repeats):
    model = np.load(path)
    begin = time.perf_counter()
    variables, bp = build(model)
    built = time.perf_counter() - begin
    arrays = bp.init(evidence_updates={variables: model["unary"].astype(np.float32)})
    timings, changes = [], []
    for _ in range(repeats):  # the first also compiles and is not counted
        wall = time.perf_counter()
        cpu = time.process_time()
        arrays, change = bp.run_with_diffs(
            arrays, num_iters=sweeps, damping=DAMPING, temperature=1.0
        )
        changes.append(np.asarray(change))
        timings.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu, wall = min(timings[1:])
    small = np.flatnonzero(np.concatenate(changes) < 1e-4)
    marginals = infer.get_marginals(bp.get_beliefs(arrays))[variables]
    return {
        "cpu": cpu,
        "wall": wall,
        "build": built,
        "compile": timings[0][0] - cpu,
        "messages_per_cpu_second": 2 * len(model["edges"]) * sweeps / cpu,
        "messages_per_second": 2 * len(model["edges"]) * sweeps / wall,
        "sweeps_to_tolerance": int(small[0]) + 1 if len(small) else None,
        "marginals": np.asarray(marginals).tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
