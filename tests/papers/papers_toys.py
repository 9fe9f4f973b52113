"""Small experiments for the tests of the frame."""

from __future__ import annotations

import os
import signal
import time

from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Unit
from papers.documents import LECTURE
from papers.units import plain


def units(settings: Settings):
    return [{"seed": [settings.seed, i], "pause": 0.0} for i in range(settings.count(4, 2))]


def work(seed, pause):
    if pause < 0:
        raise ValueError("pause")
    time.sleep(pause)
    return {"value": seed[0] + seed[1] / 3.0}


def vanish(seed, pause):
    """A process that is killed from outside."""
    if seed[1] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(seed, pause)


def report(done):
    values = [unit.found["value"] for unit in done]
    table = Table.of("Values", [{"ours": Estimate.of(values), "paper": 1.0}])
    return Report((table,), (Claim.above("values are above 0", values),))


def quick(experiment, trials=None, most=None):
    """All units of the quick version of an experiment, done here and as files would have them."""
    given = experiment.units(Settings(trials=trials, quick=True))[:most]
    return [Unit(plain(each), plain(experiment.work(**each))) for each in given]


def make(name, work=work, **more):
    options = {"readings": ("It is small.",)} | more
    return Experiment(
        name, LECTURE, "table 0", "How large are values?", ("one",), units, work, report, **options
    )


EXPERIMENTS = {"toy": make("toy"), "vanishing": make("vanishing", vanish)}
