"""``python -m papers.page`` writes the page of results, docs/results.md, from committed files.

Pictures go to docs/_static/results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from papers.base import Claim, Experiment, Settings, Table, cell_text
from papers.catalogue import EXPERIMENTS, NOT_REPRODUCED, UNFINISHED
from papers.command import draw
from papers.documents import DOCUMENTS, Document
from papers.results import COMMITTED, Results

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "_static" / "results"
_HEAD = """\
# Results

What the documents behind the library report, and what comes out here. Every table is made by
`python -m papers NAME --full` from the files in `papers/results`, which hold all units of work with
their settings and seeds; `python -m papers.page` makes this page from them.
[The papers' experiments](guide/papers.md) says how to run them again.

The number after ± is the standard error over trials. A verdict is *holds* or *does not hold* where
Student's 95 % confidence interval of the difference excludes 0 (about two standard errors of many
trials, 4.3 of three), *undecided* where it contains 0, and *not comparable* where the paper has
other data or another measure. Two systems that do not differ are still told apart by chance in
about one comparison of twenty. Where a claim gives another bound ("to be above"), the interval is
compared with that bound; where it has no trials, such as a count, the number itself decides.

Units that ended with warnings are counted below the tables. A `MixingWarning` says that the chains
of a sampler still disagreed, so that more sweeps might change its figures; an `InferenceWarning`
says that messages did not converge, or that bounds were far apart.
"""


def text(results: Mapping[str, Results]) -> str:
    """Return the page."""
    lines = [line for document in DOCUMENTS for line in _of_document(document, results)]
    return "\n".join([_HEAD, *lines, *_costs(results)])


def committed(folder: Path = COMMITTED) -> dict[str, Results]:
    """Return the results of full runs by experiment."""
    return {path.stem: Results.read(path) for path in sorted(folder.glob("*.json"))}


def _of_document(document: Document, results: Mapping[str, Results]) -> Iterator[str]:
    yield f"## {document.title}"
    yield ""
    yield f"{document.authors}, {document.place}, {document.year}."
    yield ""
    for experiment in EXPERIMENTS.values():
        if experiment.document is document:
            yield from _of_experiment(experiment, results.get(experiment.name))
    reasons = [(item, why) for of, item, why in NOT_REPRODUCED if of is document]
    if reasons:
        yield from ("### Not made again", "", *(f"- {item}: {why}." for item, why in reasons), "")


def _of_experiment(experiment: Experiment, results: Results | None) -> Iterator[str]:
    item = experiment.item[0].upper() + experiment.item[1:]
    yield from (f"### {item} (`{experiment.name}`)", "", experiment.asks, "")
    if experiment.systems:
        yield from (f"Systems: {', '.join(experiment.systems)}.", "")
    if results is None:
        why = UNFINISHED.get(experiment.name)
        reason = f": {why}" if why else ""
        yield from (f"No full run of its {_planned(experiment)} units is on file{reason}.", "")
    else:
        report = experiment.report(results.units)
        for table in report.tables:
            yield from _table(table)
        yield from _claims(report.claims)
        for name in experiment.pictures:
            path = f"_static/results/{experiment.name}-{name}.png"
            yield from (f"![{experiment.name}, {name}]({path})", "")
        yield from (_how(experiment, results), "")
    yield from (line for reading in experiment.readings for line in (f"- {reading}",))
    yield from [""] if experiment.readings else []


def _table(table: Table) -> Iterator[str]:
    if table.heading:
        yield from (f"**{table.heading}**", "")
    yield from _rows(table.columns, [[cell_text(cell) for cell in row] for row in table.rows])


def _claims(claims: Sequence[Claim]) -> Iterator[str]:
    if claims:
        rows = [(claim.says, f"**{claim.verdict}**", claim.because) for claim in claims]
        yield from _rows(("claim", "verdict", "because"), rows)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (columns, ["---"] * len(columns), *rows):
        cells = [cell.replace("|", r"\|") for cell in row]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _planned(experiment: Experiment) -> int:
    """Return the number of units of a full run."""
    return len(experiment.units(Settings()))


def _how(experiment: Experiment, results: Results) -> str:
    """Say in one line how it was made."""
    made = results.made_by
    old = "" if results.version == experiment.version else " (an earlier version of the experiment)"
    trials = results.settings["trials"]
    planned = _planned(experiment)
    said = f", {trials} trials of a full run of {planned} units" if trials else ""
    if not trials and len(results.units) < planned:
        said = f", a part of the {planned} of a full run"
    return (
        f"{len(results.units)} units from seed {results.settings['seed']}{said}{old}, "
        f"{results.minutes:.1f} CPU minutes; structlearn {made['structlearn']}, "
        f"Python {made['python']}, NumPy {made['numpy']}, {made['machine']}.{_warned(results)}"
    )


def _costs(results: Mapping[str, Results]) -> Iterator[str]:
    """Say what full runs cost, all together too."""
    rows = [
        (
            name,
            str(len(results[name].units)),
            f"{results[name].minutes:.1f}",
            f"{max(unit.seconds for unit in results[name].units):.1f}",
        )
        for name in EXPERIMENTS
        if name in results
    ]
    total = sum(each.minutes for each in results.values())
    if rows:
        yield from ("## What it takes", "")
        yield f"All that is on file took {total:.0f} CPU minutes."
        yield ""
        yield from _rows(("experiment", "units", "CPU minutes", "longest unit (CPU s)"), rows)


def _warned(results: Results) -> str:
    """Say how many units had which warnings."""
    counts = Counter(name for unit in results.units for name in unit.warned)
    words = [f"{name} in {n} units" for name, n in sorted(counts.items())]
    return f" Warnings: {', '.join(words)}." if words else ""


def main() -> None:
    """Write the page and its pictures."""
    found = committed()
    (DOCS / "results.md").write_text(text(found), encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, results in found.items():
        for line in draw(EXPERIMENTS[name], results.units, PICTURES):
            print(line)


if __name__ == "__main__":
    main()
