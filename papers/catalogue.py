"""All experiments by name."""

from __future__ import annotations

from papers.base import Experiment
from papers.documents import HYBRID_LOSS, INFINITE_HMM, MARGINAL_SVM, PAIRED_DUAL, Document
from papers.experiments import (
    chunking,
    convergence,
    faces,
    groups,
    hybrid,
    infinite,
    infinite_chain,
    infinite_gaps,
    infinite_motion,
    infinite_states,
    interactions,
    lecture,
    objects,
    paired,
    rule_weights,
    segmentation,
    simulated,
    training_size,
    trust,
    uncertainty,
)

#: In the order in which experiments are listed and run.
_MODULES = (
    simulated, convergence, uncertainty, training_size, segmentation, objects, hybrid, chunking,
    interactions, groups, trust, faces, paired, rule_weights, infinite, infinite_chain,
    infinite_gaps, infinite_states, infinite_motion, lecture,
)  # fmt: skip

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for module in _MODULES for each in module.EXPERIMENTS
}

#: Tables and figures that are not made again, and why.
NOT_REPRODUCED: tuple[tuple[Document, str, str], ...] = (
    (MARGINAL_SVM, "The constraint form, equation 9", "its solutions are those of equation 3"),
    (
        HYBRID_LOSS,
        "Figure 5",
        "pictures of frames that are not available; `interactions` has counts",
    ),
    (PAIRED_DUAL, "Appendices B to D", "full curves and models; they are not in the text we have"),
    (PAIRED_DUAL, "The Venezuelan tweets of row 1", "not available; `groups` has other people"),
    (INFINITE_HMM, "RGBD-HuDaAct of table 3", "not available; `actions` has other recordings"),
    (INFINITE_HMM, "The 21 protein features of table 1", "the paper does not say what they are"),
    (INFINITE_HMM, "The appendix on convergence", "it is not in the text we have"),
)

#: Experiments without a full run on file, and why. CPU minutes are estimates from single units.
UNFINISHED: dict[str, str] = {}
