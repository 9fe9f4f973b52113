"""The page of results: it is that of the committed files, and says what they say."""

from __future__ import annotations

import pytest

from papers import page
from papers.base import Settings
from papers.catalogue import EXPERIMENTS
from papers.documents import DOCUMENTS
from papers.results import Results
from papers.units import plain

COMMITTED = page.committed()


def test_the_page_is_up_to_date():
    """Otherwise: python -m papers.page."""
    assert (page.DOCS / "results.md").read_text(encoding="utf-8") == page.text(COMMITTED)


def test_every_document_and_experiment_is_on_the_page():
    text = page.text({})
    assert all(f"## {document.title}" in text for document in DOCUMENTS)
    assert all(f"(`{name}`)" in text for name in EXPERIMENTS)
    assert text.count("is on file") == len(EXPERIMENTS)
    assert "## What it takes" not in text


def test_tables_claims_and_settings_are_shown(tmp_path, monkeypatch):
    from papers_toys import EXPERIMENTS as TOYS

    from papers.units import Store

    toy = TOYS["toy"]
    monkeypatch.setitem(EXPERIMENTS, "toy", toy)
    settings = Settings(trials=3, seed=5)
    units = [Store(tmp_path).do(toy, given) for given in toy.units(settings)]
    found = Results.read(Results.of(toy, settings, units).write(tmp_path))
    text = page.text({"toy": found})
    assert "| 5.33 ±0.19 | 1 |" in text
    assert "| values are above 0 | **holds** | 5.33 ±0.19 over 3 trials |" in text
    assert "3 units from seed 5, 3 trials of a full run of" in text
    assert "| toy | 3 | 0.0 |" in text
    assert "- It is small." in text


@pytest.mark.parametrize("name", sorted(COMMITTED))
def test_committed_results_are_units_of_full_runs(name):
    results = COMMITTED[name]
    experiment = EXPERIMENTS[name]
    assert results.name == name
    assert results.settings["quick"] is False
    planned = [plain(given) for given in experiment.units(Settings(results.settings["trials"]))]
    assert all(unit.given in planned for unit in results.units)
    assert len(results.units) == len(planned)
    assert "a part of the" not in page.text({name: results})
