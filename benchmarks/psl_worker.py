"""Find the best values of one program, here or in PSL, in a process of its own; prints JSON.

Usage: python psl_worker.py ours|theirs MODEL VALUES [TOLERANCE]

All costs count: imports, start-up of the virtual machine, reading, grounding, inference. The
values go to a file, so that both can be judged by the same energy.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time


def ours(model: str, values: str, tolerance: str = "1e-4") -> dict:
    import numpy as np

    from structlearn import RuleModel

    rules = RuleModel.from_file(model, tol=float(tolerance))
    rules.grounding_  # noqa: B018
    grounded = clocks()
    out = {"energy": rules.energy_, "gap": rules.gap_, "violation": rules.violation_}
    np.save(values, rules.result_.y)
    out |= {"forms": rules.grounding_.hinges.n_forms, "status": rules.result_.status}
    return out | {"ground_cpu": grounded[0], "ground_wall": grounded[1]}


def theirs(model: str, values: str) -> dict:
    from pslpython import runtime

    with open(model, encoding="utf-8") as file:
        config = json.load(file)
    config.setdefault("options", {}).update(
        {
            "runtime.log.level": "DEBUG",
            "parallel.numthreads": os.cpu_count(),
            "runtime.learn": False,
            "runtime.inference": True,
            "runtime.inference.output.results": False,
            "random.seed": 1,
        }
    )
    found = runtime.run(config, os.path.dirname(os.path.abspath(model)), ["-Xmx12g"])
    with open(values, "w", encoding="utf-8") as file:
        json.dump(found["atoms"], file)
    return {}


def clocks() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, time.time() - _begun()


def peak() -> float:
    """Most memory of this process in MB; what `getrusage` says begins with that of its parent."""
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s*(\d+)", file.read())[1]) / 1024


def _begun() -> float:
    """When this process started, in seconds of the epoch."""
    with open("/proc/self/stat", encoding="ascii") as file:
        ticks = int(re.sub(r".*\) ", "", file.read()).split()[19])
    with open("/proc/uptime", encoding="ascii") as file:
        up = float(file.read().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    out = {"ours": ours, "theirs": theirs}[sys.argv[1]](*sys.argv[2:])
    cpu, wall = clocks()
    print("@@" + json.dumps(out | {"cpu": cpu, "wall": wall, "rss": peak()}), flush=True)
