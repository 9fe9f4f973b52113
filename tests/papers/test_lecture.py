"""The lecture's algorithms, on few graphs."""

from __future__ import annotations

import numpy as np
import pytest
from papers_toys import quick

from papers.base import Verdict
from papers.catalogue import EXPERIMENTS
from papers.experiments.lecture import draw, edges_of
from structlearn import infer


@pytest.mark.parametrize("kind", ["acyclic", "cyclic"])
def test_graphs_have_cycles_or_not(kind):
    edges = edges_of(kind, np.random.default_rng(0))
    assert len(edges) == (11 if kind == "acyclic" else 17)
    graph = draw(kind, 1.0, np.random.default_rng(0))
    answer = infer(graph, "partition", n_jobs=1)
    assert (answer.method in ("tree", "chain")) == (kind == "acyclic")


def test_message_passing():
    report = EXPERIMENTS["message-passing"].report(quick(EXPERIMENTS["message-passing"], trials=4))
    (table,) = report.tables
    assert table.column("graphs") == [4, 4, 4, 4]
    exact, heuristic, _ = report.claims
    assert exact.verdict == heuristic.verdict == Verdict.HOLDS


def test_steepest_descent_solves_acyclic_graphs():
    done = quick(EXPERIMENTS["steepest-descent"], trials=1)
    report = EXPERIMENTS["steepest-descent"].report(done)
    assert [claim.verdict for claim in report.claims] == [Verdict.HOLDS]
