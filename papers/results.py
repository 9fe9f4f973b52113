"""What a run found, as a small file: all units, with settings, versions and the machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from papers.base import Experiment, Settings, Unit
from papers.files import write_bytes
from structlearn._version import __version__

#: Results of full runs, which the page of results is made from.
COMMITTED = Path(__file__).with_name("results")
_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "duckdb")


@dataclass(frozen=True)
class Results:
    """All units of an experiment, and how they were made."""

    name: str
    version: int
    settings: dict[str, Any]
    made_by: dict[str, str]
    units: tuple[Unit, ...]

    @classmethod
    def of(cls, experiment: Experiment, settings: Settings, units: Sequence[Unit]) -> Results:
        """Note what this machine is, too."""
        given = {"quick": settings.quick, "trials": settings.trials, "seed": settings.seed}
        return cls(experiment.name, experiment.version, given, _this_machine(), tuple(units))

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file."""
        saved = json.loads(path.read_bytes())
        saved["units"] = tuple(Unit(**unit) for unit in saved["units"])
        return cls(**saved)

    def write(self, folder: Path) -> Path:
        """Write a file named after the experiment, with one line for every unit."""
        head = {key: value for key, value in vars(self).items() if key != "units"}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
        units = ",\n".join(f"  {json.dumps(unit._asdict())}" for unit in self.units)
        text = "\n".join(["{", *lines, ' "units": [', units, " ]", "}", ""])
        path = folder / f"{self.name}.json"
        write_bytes(path, text.encode())
        return path

    @property
    def minutes(self) -> float:
        """Of the processor, for all units."""
        return sum(unit.seconds for unit in self.units) / 60.0


def _this_machine() -> dict[str, str]:
    versions = {name: _version(name) for name in _LIBRARIES}
    return {
        "structlearn": __version__,
        "python": platform.python_version(),
        **versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _version(library: str) -> str:
    """Return a version; experiments without rules also run where DuckDB is not installed."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"
