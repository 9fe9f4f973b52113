"""All experiments by name."""

from __future__ import annotations

from papers.base import Experiment
from papers.documents import Document
from papers.experiments import (
    chunking,
    convergence,
    faces,
    groups,
    hybrid,
    infinite,
    infinite_chain,
    infinite_motion,
    infinite_states,
    paired,
    rule_weights,
    segmentation,
    simulated,
    trust,
)

#: In the order in which experiments are listed and run.
_MODULES = (
    simulated, convergence, segmentation, hybrid, chunking, groups, trust, faces, paired,
    rule_weights, infinite, infinite_chain, infinite_states, infinite_motion,
)  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for module in _MODULES for each in module.EXPERIMENTS
}

#: Tables and figures that are not made again, and why.
NOT_REPRODUCED: tuple[tuple[Document, str, str], ...] = ()
