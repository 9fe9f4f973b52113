"""Kernels of chains in Triton's interpreter, against loops of the host and enumeration."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from layers import chain_pairs, loss_of
from structlearn._src.torch import card_chain
from structlearn.errors import ArgumentError, ImpossibleEvidenceError, TooWideError
from structlearn.torch import ChainLoss

pytest.importorskip("triton")
# Triton reads the variable when it is imported, so these tests run in a process of their own.
INSIDE = os.environ.get("TRITON_INTERPRET") == "1"
inside = pytest.mark.skipif(not INSIDE, reason="runs in the interpreter, by the first test")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:TRITON_")

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]).bool()


@pytest.mark.skipif(INSIDE, reason="this is the interpreter")
def test_all_of_these_in_the_interpreter():
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    assert run.stdout.splitlines()[0].count(".") > 20  # tests that passed, not skipped ones


@pytest.fixture
def ways(monkeypatch):
    """Return a function that calls another by the loops of the host, and by kernels."""

    def both(call):
        expected = call()
        with monkeypatch.context() as patch:
            patch.setattr(card_chain, "DEVICES", ["cpu"])
            return expected, call()

    return both


def layer(loss="log", kind=torch.double, **options):
    torch.manual_seed(0)
    made = ChainLoss(3, loss, **{"reduction": "none", **options}).to(kind)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


def problem(kind=torch.double, hidden=True, outside=99):
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(3, 4, 3, dtype=kind, generator=generator)
    labels = torch.randint(-1 if hidden else 0, 3, (3, 4), generator=generator)
    return scores, torch.where(MASK, labels, outside)


def gradients(made, scores, labels, mask=MASK, tables=None, weights=(1.0, 2.0, 0.5)):
    inputs = [scores.clone().requires_grad_(), *made.parameters()]
    if tables is not None:
        tables = tables.clone().requires_grad_()
        inputs.append(tables)
    losses = made(inputs[0], labels, mask, tables)
    total = (losses * torch.tensor(weights).to(losses)).sum() if losses.ndim else losses
    return losses.detach(), *torch.autograd.grad(total, inputs)


def close(found, expected, kind=torch.double):
    limits = {"rtol": 1e-5, "atol": 3e-6} if kind == torch.float else {}
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, **limits)


@inside
@pytest.mark.parametrize(
    ("loss", "kind", "hidden"),
    [
        ("log", torch.float, False),
        ("log", torch.float, True),
        ("log", torch.double, True),
        ("hinge", torch.float, True),
        ("marginal", torch.float, True),
        ("hybrid", torch.float, False),
    ],
)
def test_kernels_equal_the_loops_of_the_host(ways, loss, kind, hidden):
    """Products of matrices in single precision, the log domain in double and at temperature 0."""
    made = layer(loss, kind, cost="hamming-mean")
    expected, found = ways(lambda: gradients(made, *problem(kind, hidden)))
    close(found, expected, kind)


@inside
@pytest.mark.parametrize("loss", ["log", "latent-hinge"])
def test_tables_for_each_edge(ways, loss):
    tables = torch.randn(3, 3, 3, 3, dtype=torch.double)
    expected, found = ways(lambda: gradients(layer(loss), *problem(), tables=tables))
    close(found, expected)


@inside
def test_equal_lengths_and_one_mean(ways):
    scores, labels = problem(torch.float, outside=2)
    made = layer("eps", torch.float, reduction="mean", eps_y=0.3)
    expected, found = ways(lambda: gradients(made, scores, labels, None))
    close(found, expected, torch.float)


@inside
def test_more_chains_than_one_program_takes(ways):
    """Blocks are sorted by length, and their parts of the gradient add up."""
    torch.manual_seed(2)
    scores = torch.randn(35, 5, 17)
    labels = torch.randint(0, 17, (35, 5))
    mask = torch.arange(5) < torch.randint(1, 6, (35, 1))
    made = ChainLoss(17, reduction="sum")
    expected, found = ways(lambda: gradients(made, scores, labels, mask))
    close(found, expected, torch.float)


@inside
def test_gradients_of_factors_that_lie_apart(ways):
    """Those of a column of a matrix: kernels read numbers one after another."""
    scores, labels = problem(torch.float)
    made = layer("log", torch.float)
    weights = torch.rand(3, 5)[:, 2]

    def call():
        x = scores.clone().requires_grad_()
        inputs = [x, *made.parameters()]
        return torch.autograd.grad(made(x, labels, MASK), inputs, grad_outputs=weights)

    expected, found = ways(call)
    close(found, expected, torch.float)


@inside
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_gradients_that_are_taken_again(ways, factor):
    """The first time they are finished in place; what was given away must not change."""
    scores, labels = problem(torch.float)
    made = layer("log", torch.float, reduction="sum")

    def call():
        x = scores.clone().requires_grad_()
        loss = factor * made(x, labels, MASK)
        inputs = [x, *made.parameters()]
        first = torch.autograd.grad(loss, inputs, retain_graph=True)
        second = torch.autograd.grad(3.0 * loss, inputs, retain_graph=True)
        (loss * loss).backward()
        return *first, *second, *(t.grad.clone() for t in inputs)

    def cleared():
        made.zero_grad()
        return call()

    expected, found = ways(cleared)
    close(found, expected, torch.float)


@inside
def test_kernels_equal_enumeration(monkeypatch):
    monkeypatch.setattr(card_chain, "DEVICES", ["cpu"])
    scores, labels = problem(torch.float)
    made = ChainLoss(3, "hybrid", alpha=0.3, transitions=False, reduction="none")
    table = torch.randn(3, 3)
    found = made(scores, labels, MASK, table)
    for row, length in enumerate(MASK.sum(1).tolist()):
        pairs = chain_pairs(length)
        nodes = scores[row, :length].double().numpy()
        edges = [table.double().numpy()] * len(pairs)
        wanted = loss_of(nodes, edges, pairs, labels[row, :length].numpy(), "hybrid", 0.3)
        assert float(found[row]) == pytest.approx(wanted, rel=1e-5)


@inside
@pytest.mark.parametrize("wide", [30.0, 200.0])
def test_wide_potentials_go_to_the_log_domain(ways, wide):
    """Products of matrices would lose all paths, and say so; no number is wrong in silence."""
    scores, labels = problem(torch.float)
    made = layer("log", torch.float)
    with torch.no_grad():
        made.transitions.mul_(wide)
    expected, found = ways(lambda: gradients(made, scores * wide, labels))
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@inside
def test_forbidden_transitions_and_a_path_that_is_none(ways):
    scores, _ = problem(torch.float)
    labels = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 9], [2, 9, 9, 9]])
    made = layer("log", torch.float, forbidden=[(0, 2)])
    expected, found = ways(lambda: gradients(made, scores, labels))
    close(found, expected, torch.float)


@inside
def test_queries(ways):
    scores, _ = problem()
    made = layer()

    def asked():
        return made.marginals(scores, MASK), made.entropy(scores, MASK), made.decode(scores, MASK)

    (*expected, paths), (*found, others) = ways(asked)
    close(found, expected)
    assert paths == others


@inside
def test_second_derivatives_and_transforms(ways):
    scores, labels = problem(outside=0)
    made = layer()

    def second():
        x = scores.clone().requires_grad_()
        (first,) = torch.autograd.grad(made(x, labels, MASK).sum(), x, create_graph=True)
        each = torch.func.vmap(torch.func.grad(lambda s: made(s, labels, MASK).sum()))
        return *torch.autograd.grad(first.square().sum(), x), each(torch.stack([scores, -scores]))

    expected, found = ways(second)
    close(found, expected)


@inside
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": torch.full((3, 4), 3)}, "labels"),
        ({"mask": torch.tensor([[1, 0, 1, 1]] * 3).bool()}, "mask"),
        ({"scores": torch.full((3, 4, 3), np.nan)}, "scores"),
        ({"scores": torch.full((3, 4, 3), np.inf)}, "scores"),
        ({"labels": torch.zeros(3, 4, dtype=torch.long, device="meta")}, "devices"),
    ],
)
def test_bad_input_on_a_card(monkeypatch, change, message):
    monkeypatch.setattr(card_chain, "DEVICES", ["cpu"])
    scores, labels = problem(torch.float)
    given = {"scores": scores, "labels": labels, "mask": MASK} | change
    with pytest.raises(ArgumentError, match=message):
        layer("log", torch.float)(**given)


@inside
def test_what_is_seen_before_a_batch_is_solved():
    """Marks of all kinds, each from the input that it is for."""
    from structlearn._src.cuda.fused_chain import CardChains
    from structlearn._src.cuda.inspection import Inspection

    scores, labels = problem(torch.float, hidden=False)
    edges = torch.randn(3, 3)

    def seen(**change):
        ends = torch.zeros(3), torch.zeros(3)
        given = {"scores": scores, "edges": edges, "ends": ends, "labels": labels, "mask": MASK}
        found = Inspection(CardChains.of(**given | change), 1.0)
        return found.wrong, found.loose, found.hidden

    low = torch.tensor([0.0, -np.inf, 0.0])
    assert seen() == (False, False, False)
    assert seen(labels=torch.where(labels == 0, -1, labels)) == (False, False, True)
    assert seen(labels=torch.where(MASK, -2, 0))[0]
    assert seen(mask=torch.zeros_like(MASK))[0]
    assert seen(scores=scores.log())[0]
    assert seen(scores=scores.clamp(max=0.5).sub(1.0) * np.inf) == (False, True, False)
    assert seen(ends=(low, -low))[0]
    assert seen(ends=(low, torch.zeros(3)))[1]
    assert seen(edges=edges * np.nan)[0]
    assert seen(edges=torch.eye(3) * 19.0) == (False, True, False)
    assert seen(edges=torch.eye(3) * 17.0) == (False, False, False)
    outside = torch.where(MASK[..., None], scores, np.nan)
    assert seen(scores=outside) == (False, False, False)


@inside
def test_what_was_seen_of_one_batch_is_wiped_off_for_the_next():
    from structlearn._src.cuda.fused_chain import CardChains
    from structlearn._src.cuda.inspection import Inspection

    scores, labels = problem(torch.float, hidden=False)
    edges = torch.zeros(3, 3)
    hidden = torch.where(labels == 0, -1, labels)
    found = [Inspection(CardChains.of(scores, edges, None, y), 1.0) for y in (hidden, labels % 3)]
    assert [one.hidden for one in found] == [True, False]
    again = [Inspection(CardChains.of(scores, edges, None, labels % 3), 1.0) for _ in range(2)]
    assert [one.hidden for one in again] == [False, False]
    assert {id(one.slate) for one in again} == {id(one.slate) for one in found}


@inside
def test_transitions_that_need_no_check_lose_no_path(ways):
    """At the largest spread that is not looked at, with scores that pull the other way."""
    torch.manual_seed(3)
    scores = 40.0 * torch.randn(5, 6, 3)
    labels = torch.randint(-1, 3, (5, 6))
    made = layer("log", torch.float)
    with torch.no_grad():
        made.transitions.copy_(torch.tensor([[18.0, 0.0, 0.0], [0.0, 0.0, 18.0], [0.0, 9.0, 0.0]]))
    weights = (1.0,) * 5
    expected, found = ways(lambda: gradients(made, scores, labels, None, weights=weights))
    close(found, expected, torch.float)


@inside
def test_no_path_on_a_card(monkeypatch):
    monkeypatch.setattr(card_chain, "DEVICES", ["cpu"])
    scores, labels = problem(torch.float)
    scores[1, 2] = -np.inf
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        layer("log", torch.float)(scores, labels, MASK)


@inside
@pytest.mark.parametrize("loss", ["log", "marginal"])  # by kernels, by plain PyTorch
def test_a_full_card_is_named(monkeypatch, loss):
    from structlearn._src.cuda import chain_loss
    from structlearn._src.torch import chain_function

    def crowded(*_, **__):
        raise torch.OutOfMemoryError("tried to allocate 7 GB")

    monkeypatch.setattr(card_chain, "DEVICES", ["cpu"])
    monkeypatch.setattr(chain_loss, "solve", crowded)
    monkeypatch.setattr(chain_function, "chain_losses", crowded)
    with pytest.raises(TooWideError, match=r"scores of shape \(3, 4, 3\)"):
        layer(loss, torch.float)(*problem(torch.float), MASK)


@inside
@pytest.mark.parametrize("kind", [torch.float, torch.double])
@pytest.mark.parametrize("loss", ["log", "eps", "hinge", "hybrid"])
@pytest.mark.parametrize("labels", [[0, 1, 0], [0, 1, -1]])
def test_labels_that_are_ruled_out_on_a_card(monkeypatch, loss, labels, kind):
    """There are other paths, so that sums over all of them look well."""
    monkeypatch.setattr(card_chain, "DEVICES", ["cpu"])
    labels = torch.tensor([[1, 0, 0], labels])
    scores = torch.zeros(2, 3, 2, dtype=kind)
    made = ChainLoss(2, loss, forbidden=[(0, 1)]).to(kind)
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        made(scores, labels)
    scores[1, 0, 0] = -np.inf
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        ChainLoss(2, loss).to(kind)(scores, labels)
