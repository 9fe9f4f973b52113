"""Closed lists of words, each written once; importing this imports nothing."""

from __future__ import annotations

#: Parameters of estimators that concern the run alone, not what it finds.
RUN_ONLY = frozenset({"callbacks", "checkpoint", "n_jobs", "progress", "time_limit"})
