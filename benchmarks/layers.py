"""Loss and gradient of a batch of chains on the CPU, against pytorch-crf and torch-struct."""

from __future__ import annotations

import pathlib

import torch

from chain_peers import PEERS, Batch, adopt, with_gradients
from report import Report
from structlearn.torch import ChainLoss
from timing import undisturbed

SHAPES = ((64, 64, 22), (256, 128, 10))  # batch, length, labels
_TIMES = 5.0  # as fast as a peer, at least
_BURST = 5  # calls in a row, as in training: the first finds the caches full of others' work


def run(out: pathlib.Path) -> Report:
    title = "loss and gradient of chains, float32, wall time of all cores, CPU time in brackets"
    report = Report("layers", title)
    for shape in SHAPES:
        _compare(report, *shape)
    return report


def _compare(report: Report, size: int, length: int, labels: int) -> None:
    torch.manual_seed(0)
    tables = torch.randn(size, length, labels), torch.randn(labels, labels)
    ends = torch.randn(labels), torch.randn(labels)
    batch = Batch.of(*tables, ends, torch.randint(labels, (size, length)))
    calls = {name: make(batch) for name, make in PEERS.items()}
    calls |= {f"ChainLoss {loss!r}": _ours(batch, loss) for loss in ("log", "hybrid")}
    right = with_gradients(batch, calls["ChainLoss 'log'"])
    for name in PEERS:
        for mine, theirs in zip(right, with_gradients(batch, calls[name]), strict=True):
            torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-3)

    def work(name: str) -> None:
        for _ in range(_BURST):
            with_gradients(batch, calls[name])

    times = undisturbed(work, tuple(calls))
    found = dict(zip(calls, times, strict=True))
    what = f"batch {size}, length {length}, {labels} labels"
    for name in list(calls)[len(PEERS) :]:
        mine = found[name]
        for peer in PEERS:
            report.add(
                f"{what}: {name}, times as fast as {peer}", found[peer].wall / mine.wall, "x",
                _TIMES if "log" in name else None, at_least=True,
                note=f"{_told(mine)} against {_told(found[peer])}",
            )  # fmt: skip


def _ours(batch: Batch, loss: str):
    layer = ChainLoss(batch.scores.shape[2], loss, reduction="sum")
    adopt(layer, batch, ("transitions", "starts", "ends"))
    return lambda: layer(batch.scores, batch.labels)


def _told(timing) -> str:
    wall, cpu = (1e3 * seconds / _BURST for seconds in (timing.wall, timing.cpu))
    return f"{wall:.2f} ms ({cpu:.2f})"
