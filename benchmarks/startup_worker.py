"""Import the library, or answer one question with the method given; print seconds as JSON."""

import json
import sys
import time

cpu = time.process_time()
wall = time.perf_counter()
import structlearn  # noqa: E402

if sys.argv[1] != "import":
    import numpy as np

    rng = np.random.default_rng(0)
    graph = structlearn.grid(rng.normal(size=(5, 5, 3)), rng.normal(size=(40, 3, 3)))
    cpu = time.process_time()
    wall = time.perf_counter()
    structlearn.infer(graph, "marginals", method=sys.argv[1])
print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}))
