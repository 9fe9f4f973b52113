"""Losses and gradients of chains on a card: kernels, plain loops, captured loops, peers.

Every way is first compared with double precision on the host; times are medians of CUDA events.
Peers are pytorch-crf and torch-struct, installed or in the folder out/peers (see `chain_peers`).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
import traceback

import torch

from structlearn._src.cuda.fused_chain import CardChains, Choice, Task, solve_log, solve_scaled
from structlearn._src.learn.loss import make_loss
from structlearn._src.torch.plain_chain import chain_losses
from structlearn._src.torch.table_worlds import add_ends

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BEGAN = time.monotonic()
#: Batch, length, labels. At "long" torch-struct asks for more than 140 GB, hence "few".
SIZES = {
    "short": (4096, 64, 22), "long": (256, 512, 50), "few": (32, 512, 50), "small": (64, 64, 22)
}  # fmt: skip
LIMIT = 140.0  # seconds for all


def left():
    return LIMIT - (time.monotonic() - BEGAN)


def timed(call, repeats=20, burst=1):
    """Median milliseconds of a call, after two that warm up; of calls in a burst, their share."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    found = []
    for _ in range(repeats):
        first = torch.cuda.Event(enable_timing=True)
        last = torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(burst):
            call()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last) / burst)
        if sum(found) > 3000.0:
            break
    return statistics.median(found), min(found)


def problem(size, unequal=False, hidden=0.0, seed=0):
    B, T, K = SIZES[size]
    torch.manual_seed(seed)
    scores = torch.randn(B, T, K, device=DEVICE) * 2.0
    edges = torch.randn(K, K, device=DEVICE)
    starts = torch.randn(K, device=DEVICE)
    ends = torch.randn(K, device=DEVICE)
    labels = torch.randint(0, K, (B, T), device=DEVICE)
    if hidden:
        labels = torch.where(torch.rand(B, T, device=DEVICE) < hidden, -1, labels)
    mask = None
    if unequal:
        lengths = torch.randint(1, T + 1, (B,), device=DEVICE)
        mask = torch.arange(T, device=DEVICE) < lengths[:, None]
    return scores, edges, (starts, ends), labels, mask


def whole(mask, labels):
    return torch.ones_like(labels, dtype=torch.bool) if mask is None else mask


def reference(given, chains=24):
    """Values and gradients of the first chains in double precision on the host."""
    scores, edges, ends, labels, mask = given
    host = [x.detach().cpu().double().requires_grad_() for x in (scores[:chains], edges, *ends)]
    y = labels[:chains].cpu()
    inside = whole(mask, labels)[:chains].cpu()
    nodes = add_ends(host[0], inside, host[2], host[3])
    losses = chain_losses(nodes, host[1], y, inside, make_loss("log"), None, (True, True))
    losses.sum().backward()
    return losses.detach(), [x.grad for x in host]


def apart(a, b):
    return float((a.detach().cpu().double() - b).norm() / b.norm().clamp(min=1e-30))


def kernel(given, choice, chains=None):
    scores, edges, ends, labels, mask = given
    cut = slice(chains)
    mask = None if mask is None else mask[cut]
    batch = CardChains.of(scores[cut], edges, ends, labels[cut], mask)
    if choice == "log":
        return solve_log(batch, Task())
    return solve_scaled(batch, Task(), choice)


def compare(found, wanted):
    values, grads = wanted
    worst = [apart(found.values, values)]
    mine = found.by_scores, found.by_edges, found.by_starts, found.by_ends
    worst += [apart(a, b) for a, b in zip(mine, grads, strict=False)]
    return worst, int(found.flags.max())


def best_path(given):
    batch = CardChains.of(*given)
    return lambda: solve_log(batch, Task(eps=0.0))


def eager(given):
    scores, edges, ends, labels, mask = given
    inside = whole(mask, labels)
    tables = [x.detach().requires_grad_() for x in (scores, edges, *ends)]

    def call():
        nodes = add_ends(tables[0], inside, tables[2], tables[3])
        losses = chain_losses(
            nodes, tables[1], labels, inside, make_loss("log"), None, (True, True)
        )
        return torch.autograd.grad(losses.sum(), tables)

    return call


def products(given):
    """Forward and backward as products of matrices, captured in a graph; equal lengths."""
    scores, edges, ends, labels, _ = given
    B, T, K = scores.shape
    alphas = torch.empty(T, B, K, device=DEVICE)
    weights = torch.empty(T, B, K, device=DEVICE)

    def step():
        nodes = scores.clone()
        nodes[:, 0] += ends[0]
        nodes[:, -1] += ends[1]
        tops = nodes.amax(2, keepdim=True)
        exps = (nodes - tops).exp()
        E = (edges - edges.max()).exp()
        Et = E.T.contiguous()
        a = exps[:, 0]
        log_z = tops.sum((1, 2)) + (T - 1) * edges.max()
        for t in range(T):
            if t:
                a = (a @ E) * exps[:, t]
            total = a.sum(1, keepdim=True)
            a = a / total
            log_z = log_z + total[:, 0].log()
            alphas[t] = a
        b = torch.ones_like(a)
        grad = torch.empty_like(nodes)
        for t in range(T - 1, -1, -1):
            p = alphas[t] * b
            z = p.sum(1, keepdim=True)
            grad[:, t] = p / z
            if t:
                w = exps[:, t] * b
                b = w @ Et
                weights[t] = w / (alphas[t - 1] * b).sum(1, keepdim=True)
                b = b / b.sum(1, keepdim=True)
        by_edges = torch.einsum("tbi,tbj->ij", alphas[:-1], weights[1:]) * E
        at = nodes.gather(2, labels[..., None])[..., 0].sum(1)
        at = at + edges[labels[:, :-1], labels[:, 1:]].sum(1)
        one = torch.zeros_like(grad).scatter_(2, labels[..., None], 1.0)
        return log_z - at, grad - one, by_edges

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def peer(name, given):
    """Loss and gradients by another package, where the loss is that of our layer."""
    from benchmarks.chain_peers import PEERS, Batch, with_gradients

    scores, edges, ends, labels, _ = given
    batch = Batch.of(scores, edges, ends, labels)
    loss = PEERS[name](batch)
    ours = layer_call(given)().detach()
    theirs = loss().detach()
    torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=0.0)
    return lambda: with_gradients(batch, loss)


def time_peers(given, told):
    """Time all peers on chains of equal lengths; one that does not run does not stop the others."""
    for name in ("pytorch-crf", "torch-struct"):
        told[name] = attempt(name, lambda name=name: time_line(peer(name, given), 3))
        torch.cuda.empty_cache()  # of what a failure for want of memory has left


def layer_call(given, **options):
    from structlearn._src.torch.chain_layer import ChainLoss

    scores, edges, ends, labels, mask = given
    layer = ChainLoss(edges.shape[0], reduction="sum", **options).cuda()
    with torch.no_grad():
        layer.transitions.copy_(edges)
        layer.starts.copy_(ends[0])
        layer.ends.copy_(ends[1])
    x = scores.detach().requires_grad_()

    def call():
        layer.zero_grad()
        x.grad = None
        loss = layer(x, labels, mask)
        loss.backward()
        return loss

    return call


def attempt(name, work):
    """Print what a way of computing gives, or why it does not."""
    if left() < 5.0:
        print(f"{name:<40} skipped: no time left", flush=True)
        return None
    began = time.monotonic()
    try:
        told = work()
    except Exception as error:
        print(f"{name:<40} {type(error).__name__}: {str(error)[:400]}", flush=True)
        if "-v" in sys.argv:
            traceback.print_exc()
        return None
    print(f"{name:<40} {told}  [{time.monotonic() - began:.1f} s]", flush=True)
    return told


def time_line(call, repeats=20, burst=1):
    median, least = timed(call, repeats, burst)
    return f"{median:9.3f} ms (least {least:.3f})"


def variant(given, choice, wanted):
    def work():
        worst, flag = compare(kernel(given, choice, 24), wanted)
        line = time_line(lambda: kernel(given, choice))
        line += f" in a burst {timed(lambda: kernel(given, choice), 5, 10)[0]:.3f}"
        return f"{line} errors {' '.join(f'{e:.0e}' for e in worst)} flag {flag}"

    return work


VARIANTS = {
    "short": [(16, 1, "tf32x3"), (16, 2, "tf32x3"), (16, 4, "tf32x3"), (32, 2, "tf32x3")],
    "long": [(16, 4, "tf32x3"), (16, 8, "tf32x3")],
}


def warm(size, number):
    """Compile one variant, for the cache on disk."""
    if number < len(VARIANTS[size]):
        kernel(problem(size), Choice(*VARIANTS[size][number]))
    elif number == len(VARIANTS[size]) + 2:
        kernel(problem(size), "log")
    elif number == len(VARIANTS[size]) + 3:
        best_path(problem(size))()
    elif number == len(VARIANTS[size]):
        kernel(problem(size, unequal=True, hidden=0.3), None)
    else:
        layer_call(problem(size))()
        layer_call(problem(size, unequal=True))()
    torch.cuda.synchronize()


def warm_all():
    """Compile all variants at once, each in a process of its own."""
    running = []
    for size in VARIANTS:
        for number in range(len(VARIANTS[size]) + 4):
            command = [sys.executable, __file__, "--warm", size, str(number)]
            running.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
    for process in running:
        try:
            process.wait(max(0.0, 60.0 - (time.monotonic() - BEGAN)))
        except subprocess.TimeoutExpired:
            process.kill()
    print(f"compiled in {time.monotonic() - BEGAN:.0f} s", flush=True)


def profile_layers(found):
    """Say where calls of the layer spend their time."""
    from benchmarks.gpu_profile import profiled

    for size in VARIANTS:
        call = layer_call(problem(size))
        attempt(
            "", lambda size=size, call=call: keep(found, size, profiled(f"ChainLoss {size}", call))
        )


def keep(found, key, value):
    found[key] = value
    return ""


def quick(out):
    """Time kernels, the layer and its peers at both sizes, and compare kernels with the host."""
    found = {}
    for size in VARIANTS:
        given = problem(size)
        wanted = reference(given)
        told = found[size] = {}
        print(f"-- {size}: batch, length, labels = {SIZES[size]}", flush=True)
        for each in [*VARIANTS[size], "log"]:
            choice = each if each == "log" else Choice(*each)
            told[f"kernel {each}"] = attempt(f"kernel {each}", variant(given, choice, wanted))
        for kind, of in (("equal", given), ("masked", problem(size, unequal=True)),
                         ("hidden", problem(size, hidden=0.3))):  # fmt: skip
            for name, burst in (("one by one", 1), ("in a row", 10)):
                call = layer_call(of)
                told[f"ChainLoss {kind} {name}"] = attempt(
                    f"ChainLoss {kind}, {name}",
                    lambda call=call, burst=burst: time_line(call, 20, burst),
                )
        time_peers(given, told)
    few, told = problem("few"), {}
    print(f"-- few: batch, length, labels = {SIZES['few']}", flush=True)
    told["ChainLoss"] = attempt("ChainLoss", lambda: time_line(layer_call(few)))
    time_peers(few, told)
    found["few"] = told
    found["profiles"] = {}
    profile_layers(found["profiles"])
    if out:
        pathlib.Path(out).write_text(json.dumps(found, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm", nargs=2, metavar=("SIZE", "NUMBER"))
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--quick", action="store_true", help="no plain loops, fewer variants")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.warm:
        warm(options.warm[0], int(options.warm[1]))
        return
    warm_all()
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    if options.quick:
        quick(options.out)
        return
    for size in VARIANTS:
        given = problem(size)
        wanted = reference(given)
        print(f"-- {size}: batch, length, labels = {SIZES[size]}", flush=True)
        for each in VARIANTS[size]:
            attempt(f"kernel {each}", variant(given, Choice(*each), wanted))
        uneven = problem(size, unequal=True, hidden=0.3)
        attempt("unequal, hidden", variant(uneven, None, reference(uneven)))
        attempt("log domain", variant(given, "log", wanted))
        attempt("log domain, temperature 0", lambda given=given: time_line(best_path(given)))
        attempt("ChainLoss", lambda given=given: time_line(layer_call(given)))
        attempt("captured products", lambda given=given: time_line(products(given)))
        attempt("plain loop", lambda given=given: time_line(eager(given), 3))
        time_peers(given, {})
    profile_layers({})
    print(f"all in {time.monotonic() - BEGAN:.0f} s")


if __name__ == "__main__":
    main()
