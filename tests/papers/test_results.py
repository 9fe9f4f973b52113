"""Files of results: everything comes back as it was."""

from __future__ import annotations

import json
from importlib import metadata

from papers_toys import EXPERIMENTS

from papers.base import Settings
from papers.results import Results
from papers.units import Store


def test_a_file_holds_units_settings_versions_and_the_machine(tmp_path):
    toy = EXPERIMENTS["toy"]
    settings = Settings(seed=2, quick=True)
    units = [Store(tmp_path).do(toy, given) for given in toy.units(settings)]
    path = Results.of(toy, settings, units).write(tmp_path)
    assert path == tmp_path / "toy.json"
    saved = json.loads(path.read_text())
    assert saved["settings"] == {"quick": True, "trials": None, "seed": 2}
    assert {"structlearn", "python", "numpy", "machine"} <= set(saved["made_by"])
    found = Results.read(path)
    assert list(found.units) == units
    assert found.minutes >= 0.0
    assert len(path.read_text().splitlines()) == 8 + len(units)  # one line for each


def test_results_are_kept_where_a_library_is_not_installed(monkeypatch):
    def version(name):
        if name == "duckdb":
            raise metadata.PackageNotFoundError(name)
        return "1.2"

    monkeypatch.setattr(metadata, "version", version)
    made_by = Results.of(EXPERIMENTS["toy"], Settings(trials=1), []).made_by
    assert made_by["duckdb"] == "not installed"
    assert made_by["numpy"] == "1.2"
