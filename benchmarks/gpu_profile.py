"""Where a call on a card spends its time: kernels, and gaps in which the card waits."""

from __future__ import annotations

import time

import torch
from torch.profiler import ProfilerActivity, profile


def profiled(name, call, repeats=5, rows=12):
    """Print and return milliseconds of a call by kernel and by function of the host."""
    call()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    wall = 1e3 * (time.perf_counter() - begun) / repeats
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as told:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    averages = told.key_averages()
    on_card = [a for a in averages if "CUDA" in str(a.device_type)]
    kernels = sorted(on_card, key=lambda a: -a.self_device_time_total)[:rows]
    hosts = sorted(
        (a for a in averages if "CPU" in str(a.device_type)), key=lambda a: -a.self_cpu_time_total
    )[:rows]
    busy = sum(a.self_device_time_total for a in on_card) / repeats / 1e3
    print(f"profile of {name}: {wall:.3f} ms a call, kernels {busy:.3f} ms, gaps {wall - busy:.3f}")
    found = {"wall_ms": wall, "kernels_ms": busy, "kernels": [], "host": []}
    for kind, rows_, time_of in (
        ("kernels", kernels, lambda a: a.self_device_time_total),
        ("host", hosts, lambda a: a.self_cpu_time_total),
    ):
        for a in rows_:
            each = time_of(a) / repeats / 1e3
            found[kind].append([a.key[:90], a.count / repeats, each])
            print(f"  {kind:<7} {each:8.4f} ms  {a.count / repeats:6.1f} x  {a.key[:90]}")
    return found
