"""Units that were done, on disk: one small file each, so that a killed run goes on.

The name of a file is made from the experiment, its version and what the unit is given: a unit whose
settings have changed is another unit.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from papers.base import Experiment, Unit
from papers.files import write_bytes
from structlearn._version import __version__
from structlearn.errors import ArgumentError

_DIGITS = 6  # of numbers in files: more than any table shows


def plain(value: Any) -> Any:
    """Return what JSON can say, with numbers of six digits; what is no number becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


class Store:
    """A folder with the units of all experiments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, experiment: Experiment, given: Mapping[str, Any]) -> Path:
        """Return the file of a unit."""
        identity = [experiment.name, experiment.version, __version__, plain(given)]
        text = json.dumps(identity, sort_keys=True)
        return (
            self.folder / experiment.name / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"
        )

    def find(self, experiment: Experiment, given: Mapping[str, Any]) -> Unit | None:
        """Return a unit that was done, or None."""
        path = self.path(experiment, given)
        try:
            return Unit(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):  # no JSON, or not what `do` writes
            raise ArgumentError(
                f"{path} is damaged; remove it, and its unit is done again"
            ) from None

    def do(self, experiment: Experiment, given: Mapping[str, Any]) -> Unit:
        """Do a unit and keep it; the same comes out as if it was read from the disk.

        Warnings are noted with it: nobody reads those of a hundred processes.
        """
        began = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = plain(experiment.work(**given))
        warned = sorted({warning.category.__name__ for warning in caught})
        unit = Unit(plain(given), found, round(time.process_time() - began, 2), warned)
        path = self.path(experiment, given)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(unit._asdict()).encode() + b"\n")
        return unit
