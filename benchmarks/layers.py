"""Loss and gradient of a batch of chains on the CPU: `structlearn.torch` against pytorch-crf."""

from __future__ import annotations

import pathlib

import torch
import torchcrf

from report import Report
from structlearn.torch import CRF, ChainLoss
from timing import undisturbed

SHAPES = ((64, 64, 22), (256, 128, 10))  # batch, length, labels


def run(out: pathlib.Path) -> Report:
    report = Report("layers", "loss and gradient of chains, float32, wall time of all cores")
    for shape in SHAPES:
        _compare(report, *shape)
    return report


def _compare(report: Report, batch: int, length: int, labels: int) -> None:
    torch.manual_seed(0)
    scores = torch.randn(batch, length, labels, requires_grad=True)
    truth = torch.randint(labels, (batch, length))
    peer = torchcrf.CRF(labels, batch_first=True)
    ours = CRF(labels, batch_first=True)
    ours.load_state_dict(peer.state_dict())
    hybrid = ChainLoss(labels, "hybrid", reduction="sum")
    calls = {
        "pytorch-crf": lambda: -peer(scores, truth),
        "structlearn CRF": lambda: -ours(scores, truth),
        "structlearn hybrid": lambda: hybrid(scores, truth),
    }
    torch.testing.assert_close(
        calls["pytorch-crf"](), calls["structlearn CRF"](), rtol=1e-4, atol=0
    )
    times = undisturbed(lambda name: calls[name]().backward(), tuple(calls))
    found = dict(zip(calls, times, strict=True))
    what = f"batch {batch}, length {length}, {labels} labels"
    theirs = found["pytorch-crf"].wall
    for name in ("structlearn CRF", "structlearn hybrid"):
        mine = found[name].wall
        report.add(
            f"{what}: {name}, times as fast", theirs / mine, "x",
            5.0 if name.endswith("CRF") else None, at_least=True,
            note=f"{1e3 * mine:.2f} ms against {1e3 * theirs:.1f} ms",
        )  # fmt: skip
