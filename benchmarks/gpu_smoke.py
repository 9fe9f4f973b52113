"""Every estimator and every layer on a card and on the host: one line for each.

Usage: python benchmarks/gpu_smoke.py [--device cuda] [--out FILE]. With ``--device cpu`` and
TRITON_INTERPRET=1 the same kernels are interpreted on the host.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np
import torch

import structlearn
from structlearn import (
    GraphLabeler,
    GridLabeler,
    HingeField,
    MulticlassClassifier,
    RuleModel,
    SequenceClassifier,
    SequenceLabeler,
    infer,
    infer_many,
)
from structlearn._src.common.place import at
from structlearn._src.places.cuda import Cuda
from structlearn._src.torch import card_chain
from structlearn.fields import Hinges
from structlearn.torch import CRF, ChainLoss, FieldLoss, GraphLoss, GridLoss, RuleLoss

CASES = {}  # by name: a function of a device, and how far results may be apart


def case(name, apart=1e-3):
    """Enter a function that returns arrays."""

    def enter(function):
        CASES[name] = function, apart
        return function

    return enter


# ---- estimators -------------------------------------------------------------------------------


def sentences(rng, n=40, width=6):
    """Sequences of real features with labels that follow them and each other."""
    X = [rng.normal(size=(int(k), width)) for k in rng.integers(2, 12, n)]
    return X, [list(np.array(["a", "b", "c"])[np.argmax(x[:, :3], axis=1)]) for x in X]


def labelled(labeler, X, Y):
    """What a labeler learns and says."""
    labeler.fit(X, Y)
    said = np.concatenate([np.ravel(y) for y in labeler.predict(X)])
    return {"value": labeler.value_, "said": np.unique(said, return_inverse=True)[1]}


for _loss in ("log", "hinge", "hybrid", "marginal"):

    @case(f"SequenceLabeler {_loss}", 2e-2)
    def _sequences(device, loss=_loss):
        X, Y = sentences(np.random.default_rng(0))
        return labelled(SequenceLabeler(loss=loss, max_iter=300, random_state=0), X, Y)


@case("SequenceLabeler hidden labels", 2e-2)
def _hidden(device):
    rng = np.random.default_rng(0)
    X, Y = sentences(rng)
    Y = [[None if rng.random() < 0.3 else label for label in y] for y in Y]
    return labelled(SequenceLabeler(loss="log", max_iter=300, random_state=0), X, Y)


@case("SequenceLabeler words, L1", 2e-2)
def _lasso(device):
    rng = np.random.default_rng(0)
    X = [[[f"w{i}" for i in rng.integers(0, 9, 3)] for _ in range(5)] for _ in range(30)]
    Y = [["x" if "w1" in token else "y" for token in tokens] for tokens in X]
    return labelled(SequenceLabeler(l1_ratio=0.5, random_state=0), X, Y)


@case("SequenceClassifier", 5e-2)
def _classes(device):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 30)
    X = [np.eye(3)[:: 1 if up else -1] + 0.1 * rng.normal(size=(3, 3)) for up in y]
    found = SequenceClassifier(hidden_states=2, C=1.0, random_state=0).fit(X, y)
    return {"said": found.predict(X)}


@case("MulticlassClassifier", 2e-2)
def _rows(device):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    found = MulticlassClassifier(loss="log").fit(X, np.argmax(X[:, :3], 1))
    return {"value": found.value_, "said": found.predict(X)}


@case("GridLabeler messages", 5e-2)
def _grids(device):
    rng = np.random.default_rng(0)
    Y = [np.kron(rng.integers(0, 2, (3, 3)), np.ones((4, 4), int)) for _ in range(3)]
    X = [(y + 0.5 * rng.normal(size=y.shape))[:, :, None] for y in Y]
    made = GridLabeler(loss="log", inference="trw", edges="potts", max_iter=30, random_state=0)
    return labelled(made, X, Y)


@case("GraphLabeler", 5e-2)
def _graphs(device):
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(10):
        y = np.repeat(rng.integers(0, 2), 8)
        edges = np.array([(i, (i + j) % 8) for i in range(8) for j in (1, 3)])
        X.append((y[:, None] + rng.normal(size=(8, 2)), edges))
        Y.append(y)
    return labelled(GraphLabeler(edges="symmetric", random_state=0), X, Y)


@case("HingeField predict", 1e-3)
def _field(device):
    field = HingeField(
        [[1.0, -1.0], [-1.0, 0.0], [0.0, 1.0]], [0.0, 0.9, -0.2], powers=2, groups=[0, 1, 2],
        weights=[1.0, 2.0, 0.5],
    )  # fmt: skip
    return {"y": field.predict(), "energy": field.energy_}


@case("HingeField fit", 5e-2)
def _learnt(device):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 12))
    field = HingeField(rows, rng.normal(size=60), powers=2, groups=np.arange(60) % 3)
    return {"weights": field.fit(rng.random(12)).weights_}


@case("RuleModel fit, predict", 2e-2)
def _rules(device):
    rng = np.random.default_rng(0)
    people = [f"p{i}" for i in range(30)]
    pairs = [(a, b) for a in people for b in people if a != b and rng.random() < 0.15]
    model = RuleModel(
        "1: Knows(A, B) & Likes(A) -> Likes(B) ^2\n1: !Likes(A) ^2\n2: Seen(A) -> Likes(A)"
    )
    model.observe(Knows=pairs, Seen=[(p, float(rng.random())) for p in people])
    model.target(Likes=[(p,) for p in people])
    model.truth(Likes=[(p, float(i % 2)) for i, p in enumerate(people)])
    model.fit()
    return {"y": model.predict("Likes", frame="dict")["value"]}


@case("infer, infer_many", 1e-4)
def _infer(device):
    rng = np.random.default_rng(0)
    graphs = [structlearn.grid(rng.normal(size=(12, 12, 3)), 0.5 * np.eye(3)) for _ in range(3)]
    one = infer(graphs[0], "marginals", method="bp")
    many = infer_many(graphs, "map", method="trw")
    return {"marginals": marginals_of(one), "values": [each.value for each in many]}


def marginals_of(answer):
    """All marginals in one array."""
    found = answer.marginals
    return np.concatenate([np.ravel(found[name]) for name in found])


# ---- layers -----------------------------------------------------------------------------------


def differentiated(layer, inputs, call):
    """The loss and its gradients by inputs and parameters."""
    loss = call(layer, *inputs)
    loss.backward()
    leaves = [*(x for x in inputs if x.requires_grad), *layer.parameters()]
    found = {f"gradient {i}": leaf.grad.cpu().numpy() for i, leaf in enumerate(leaves)}
    return {"loss": float(loss)} | found


def chain_batch(device, hidden):
    torch.manual_seed(0)
    scores = torch.randn(20, 9, 5).to(device).requires_grad_()
    labels = torch.randint(-1 if hidden else 0, 5, (20, 9)).to(device)
    mask = (torch.arange(9) < torch.randint(1, 10, (20, 1))).to(device)
    return scores, labels, mask


for _loss in ("log", "hinge", "latent-hinge", "marginal", "eps", "hybrid", "perceptron"):
    for _unknown in (False, True):

        @case(f"ChainLoss {_loss}{', hidden labels' if _unknown else ''}", 1e-4)
        def _chains(device, loss=_loss, hidden=_unknown):
            batch = chain_batch(device, hidden)
            layer = seeded(lambda: ChainLoss(5, loss), device)
            return differentiated(layer, batch, lambda made, *given: made(*given))


def seeded(make, device):
    """A layer with the same parameters on every device."""
    torch.manual_seed(1)
    return make().to(device)


@case("ChainLoss queries, float64", 1e-9)
def _queries(device):
    scores, _, mask = (x.detach() for x in chain_batch(device, False))
    layer = seeded(lambda: ChainLoss(5), device).double()
    scores = scores.double()
    paths = layer.decode(scores, mask)
    return {
        "marginals": layer.marginals(scores, mask).detach().cpu().numpy(),
        "entropy": layer.entropy(scores, mask).detach().cpu().numpy(),
        "paths": np.concatenate([np.array(path) for path in paths]),
        "best": layer.k_best(scores, 2, mask)[0].detach().cpu().numpy(),
        "drawn": float(layer.sample(scores, 3, mask).shape[0]),
    }


@case("ChainLoss forbidden, tables, second order", 1e-4)
def _second(device):
    scores, labels, mask = chain_batch(device, True)
    layer = seeded(lambda: ChainLoss(5, forbidden=[(0, 4)], reduction="sum"), device)
    labels = torch.where(labels == 4, 3, labels)
    (first,) = torch.autograd.grad(layer(scores, labels, mask), scores, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), scores)
    tables = torch.linspace(-1, 1, 20 * 8 * 25).reshape(20, 8, 5, 5).to(device)
    return {"second": second.cpu().numpy(), "tables": float(layer(scores, labels, mask, tables))}


@case("CRF", 1e-4)
def _crf(device):
    batch = chain_batch(device, False)
    layer = seeded(lambda: CRF(5, batch_first=True), device)
    return differentiated(layer, batch, lambda made, *given: made(*given))


@case("GridLoss", 1e-4)
def _grid_layer(device):
    torch.manual_seed(0)
    scores = torch.randn(2, 4, 5, 3).to(device).requires_grad_()
    labels = torch.randint(-1, 3, (2, 4, 5)).to(device)
    layer = seeded(lambda: GridLoss(3, "marginal"), device)
    return differentiated(layer, (scores, labels), lambda made, *given: made(*given))


@case("GraphLoss", 1e-4)
def _graph_layer(device):
    torch.manual_seed(0)
    scores = torch.randn(6, 2).to(device).requires_grad_()
    labels = torch.randint(-1, 2, (6,)).to(device)
    edges = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5]]).to(device)
    layer = seeded(lambda: GraphLoss(2, "hybrid"), device)
    return differentiated(layer, (scores, labels, edges), lambda made, *given: made(*given))


@case("FieldLoss", 1e-3)
def _field_layer(device):
    field = Hinges(
        offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
        constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2,
        n_groups=2,
    )  # fmt: skip
    layer = seeded(lambda: FieldLoss(field, inputs=[0], surrogate="none"), device)
    x = torch.tensor([0.5], device=device, requires_grad=True)
    labels = torch.tensor([float("nan"), 1.0], device=device)
    return differentiated(layer, (x,), lambda made, given: made(labels, given))


@case("RuleLoss", 1e-3)
def _rule_layer(device):
    model = RuleModel("1: Sees(A) -> Cat(A) ^2\n0.5: Cat(A) & Friend(A, B) -> Cat(B) ^2")
    model = model.observe(Friend=[("a", "b")]).target(Sees=[("a",), ("b",)])
    model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0), ("b", 1.0)])
    layer = seeded(lambda: RuleLoss(model, "Sees"), device)
    values = torch.tensor([0.9, 0.2], device=device, requires_grad=True)
    return differentiated(layer, (values,), lambda made, given: made(given))


# ---- both -------------------------------------------------------------------------------------


def difference(ours, theirs):
    """The largest difference relative to the numbers; of words, the share that differ."""
    worst = 0.0
    for name, mine in ours.items():
        a, b = np.asarray(mine, float), np.asarray(theirs[name], float)
        if name in ("said", "paths"):
            worst = max(worst, float(np.mean(a != b)))
        else:
            worst = max(worst, float(np.abs(a - b).max() / max(1.0, np.abs(b).max())))
    return worst


def compare(name, device):
    """Run one case at both places; return a record, and print its line."""
    function, apart = CASES[name]
    record = {"name": name}
    try:
        if "Rule" in name:
            import duckdb  # noqa: F401
        begun = time.perf_counter()
        theirs = function("cpu")
        between = time.perf_counter()
        with at(Cuda(device)), KernelsOn(device):
            ours = function(device)
        record |= {"host": between - begun, "card": time.perf_counter() - between}
        record["apart"] = difference(ours, theirs)
        record["ok"] = record["apart"] <= apart
        told = f"{'ok' if record['ok'] else 'DIFFERS'} by {record['apart']:.1e}"
        told += f" (host {record['host']:.2f} s, card {record['card']:.2f} s)"
    except ModuleNotFoundError as missing:
        record |= {"ok": None, "why": f"skipped: {missing.name} is not installed"}
        told = record["why"]
    except Exception as error:
        record |= {"ok": False, "why": f"{type(error).__name__}: {error}"[:400]}
        told = f"FAILED: {record['why']}"
        traceback.print_exc(limit=-4, file=sys.stdout)
    print(f"{name:<42} {told}", flush=True)
    return record


class KernelsOn:
    """Let kernels of chains run on the device: where it is the host, in the interpreter."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        self.before = card_chain.DEVICES[:]
        card_chain.DEVICES[:] = [self.device]

    def __exit__(self, *_):
        card_chain.DEVICES[:] = self.before


def in_processes(args):
    """Share the cases out; every process prints its own lines."""
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for i in range(args.jobs):
            command = [sys.executable, __file__, "--device", args.device, "--only", args.only]
            command += ["--part", str(i), str(args.jobs), "--out", f"{folder}/{i}.json"]
            running.append(subprocess.Popen(command))
        for process in running:
            process.wait()
        files = [pathlib.Path(folder, f"{i}.json") for i in range(args.jobs)]
        return [each for file in files if file.exists() for each in json.loads(file.read_text())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes: kernels take long to compile"
    )
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("NUMBER", "OF"))
    parser.add_argument("--out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.jobs > 1:
        found = in_processes(args)
    else:
        names = [name for name in CASES if args.only in name]
        found = [compare(name, args.device) for name in names[args.part[0] :: args.part[1]]]
    wrong = [each["name"] for each in found if each["ok"] is False]
    if args.part[1] == 1:
        print(f"{len(found)} cases, {len(wrong)} wrong: {', '.join(wrong) or 'none'}", flush=True)
    if args.out:
        with open(args.out, "w") as file:
            json.dump(found, file, indent=1)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
