"""The call of pytorch-crf: against the chain, and against pytorch-crf where it is installed."""

from __future__ import annotations

import pytest
import torch

from structlearn.errors import ArgumentError
from structlearn.torch import CRF


def test_values_gradients_and_paths_are_those_of_pytorch_crf():
    torchcrf = pytest.importorskip("torchcrf")
    for seed in range(30):
        torch.manual_seed(seed)
        batch, length, states = (int(n) for n in torch.randint(1, 6, (3,)))
        first = bool(seed % 2)
        other = torchcrf.CRF(states, batch_first=first).double()
        mine = CRF(states, batch_first=first).double()
        torch.nn.init.normal_(other.transitions)
        mine.load_state_dict(other.state_dict())
        emissions = torch.randn(batch, length, states, dtype=torch.double, requires_grad=True)
        tags = torch.randint(states, (batch, length))
        mask = torch.arange(length) < torch.randint(1, length + 1, (batch, 1))
        inputs = [t if first else t.transpose(0, 1) for t in (emissions, tags, mask)]
        for reduction in ("sum", "mean", "token_mean", "none"):
            both = [crf(*inputs, reduction=reduction) for crf in (mine, other)]
            torch.testing.assert_close(*both)
            found, expected = (
                torch.autograd.grad(
                    value.sum(), [emissions, *crf.parameters()], materialize_grads=True
                )
                for value, crf in zip(both, (mine, other), strict=True)
            )
            for a, b in zip(found, expected, strict=True):
                torch.testing.assert_close(a, b)
        assert mine.decode(inputs[0], inputs[2]) == other.decode(inputs[0], inputs[2])


def test_half_precision_is_widened_before_starts_are_added():
    crf = CRF(3)
    emissions = torch.randn(4, 2, 3).bfloat16()
    tags = torch.zeros(4, 2, dtype=torch.long)
    torch.testing.assert_close(crf(emissions, tags), crf(emissions.float(), tags))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"emissions": [[0.0]]}, "emissions"),
        ({"emissions": torch.zeros(2, 3, 4)}, "scores"),
        ({"tags": torch.zeros(3, 2, dtype=torch.long)}, "tags"),
        ({"tags": torch.zeros(2, 3)}, "tags"),
        ({"tags": torch.full((2, 3), -1)}, "tags"),
        ({"mask": torch.ones(3, 2)}, "mask"),
        ({"mask": torch.ones(2, 2)}, "mask"),
        ({"reduction": "all"}, "reduction"),
    ],
)
def test_bad_input_is_named(change, match):
    good = {"emissions": torch.zeros(2, 3, 3), "tags": torch.zeros(2, 3, dtype=torch.long)}
    with pytest.raises(ArgumentError, match=match):
        CRF(3, batch_first=True)(**(good | change))
