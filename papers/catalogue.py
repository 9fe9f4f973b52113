"""All experiments by name."""

from __future__ import annotations

from collections.abc import Callable

from papers.base import Record, Settings
from papers.experiments import (
    chunking,
    convergence,
    faces,
    hybrid,
    infinite,
    infinite_chain,
    infinite_motion,
    paired,
    rule_weights,
    segmentation,
    simulated,
    trust,
)

#: What runs an experiment, in the order in which they are listed.
EXPERIMENTS: dict[str, Callable[[Settings], Record]] = {
    "chain": simulated.chain,
    "grid": simulated.grid,
    "uncertainty": simulated.uncertainty,
    "convergence": convergence.run,
    "segmentation": segmentation.run,
    "paired": paired.run,
    "hybrid": hybrid.run,
    "chunking": chunking.run,
    "epinions": trust.epinions,
    "bitcoin": trust.bitcoin,
    "faces": faces.run,
    "rule-weights": rule_weights.run,
    "infinite": infinite.run,
    "infinite-chain": infinite_chain.run,
    "bee-dance": infinite_motion.bees,
    "actions": infinite_motion.actions,
}
