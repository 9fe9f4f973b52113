"""Grounding on two workers: the same forms as in one process, from files and from rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from structlearn import RuleModel, on
from structlearn._src.places.remote_ground import RemoteHinges
from structlearn._src.rules.ground import ground_forms
from structlearn._src.rules.ground_program import GroundProgram, read_weighted_rules
from structlearn.errors import AtomError, PlaceError

RULES = """
1: Knows(A, B) & Knows(B, C) & Trusts(A, B) & Trusts(B, C) & (A != C) -> Trusts(A, C) ^2
0.5: Knows(A, B) & Trusts(A, B) -> Trusts(B, A)
2: Kind(A) & (A != 'p1') -> Trusts('p1', A)
0.3: !Trusts(A, B) ^2
1: Trusts('p0', 'p1') >= 0.5
0.7: Trusts(A, B) = Liked(B)
Trusts(A, +B) <= 3 .
1: Trusts(+A, +B) <= 4 ^2
"""


def data(n=12, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [(f"p{i}", f"p{j}") for i in range(n) for j in range(n) if i != j]
    kept = [pair for pair in pairs if rng.random() < 0.4 or "p1" in pair]
    kind = [(f"p{i}", round(float(rng.random()), 3)) for i in range(n)]
    return {"Knows": kept, "Kind": kind, "Liked": kind}, {"Trusts": pairs}


@pytest.fixture
def files(tmp_path):
    """Atoms in two Parquet files and in files of text."""
    duckdb = pytest.importorskip("duckdb")
    observed, targets = data()
    found = {}
    for name, rows in (observed | targets).items():
        path = tmp_path / f"{name}.csv"
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        found[name] = path
    parquet = tmp_path / "Knows.parquet"
    duckdb.sql(f"SELECT * FROM read_csv('{found['Knows']}', header = false)").write_parquet(
        str(parquet)
    )
    return found | {"Knows": parquet}


@pytest.fixture
def place(client):
    with on(client) as place:
        place.least_forms = 0
        yield place


def model(observed, targets, rules=RULES):
    return RuleModel(rules).observe(observed).target(targets)


def forms(hinges):
    """All forms as they are, whatever their order."""
    found = Counter()
    for i in range(hinges.n_forms):
        entries = slice(hinges.offsets[i], hinges.offsets[i + 1])
        terms = sorted(
            zip(hinges.variables[entries].tolist(), hinges.coefficients[entries], strict=True)
        )
        found[
            tuple(terms), round(hinges.constants[i], 9), hinges.kinds[i].item(),
            hinges.powers[i].item(), hinges.groups[i].item(),
        ] += 1  # fmt: skip
    return found


@pytest.mark.parametrize("parts", [2, 3])
def test_shares_make_up_the_whole(parts):
    def grounded(share):
        program = GroundProgram(read_weighted_rules(RULES))
        observed, targets = data()
        program.add("observe", observed)
        program.add("target", targets)
        program.tables.share = share
        return ground_forms(program.rules, program.tables)

    pieces = [grounded((i, parts)) for i in range(parts)]
    sizes = [piece.n_forms for piece in pieces]
    assert max(sizes) < 2 * sum(sizes) / parts
    assert sum(map(forms, pieces), Counter()) == forms(grounded(None))


@pytest.mark.parametrize("how", ["files", "rows"])
def test_workers_ground_what_one_process_does(place, files, how):
    observed, targets = data()
    if how == "files":
        observed = {name: files[name] for name in observed}
        targets = {"Trusts": files["Trusts"]}
    there = model(observed, targets)
    spread = there.grounding_.hinges
    assert isinstance(spread, RemoteHinges)
    values = there.predict(frame="dict")["value"]
    assert "constants" not in vars(spread)  # no form has come here
    with on("threads"):
        here = model(observed, targets)
        assert not isinstance(here.grounding_.hinges, RemoteHinges)
        np.testing.assert_allclose(values, here.predict(frame="dict")["value"], atol=1e-3)
        assert here.result_.energy == pytest.approx(there.result_.energy, rel=1e-5)
    np.testing.assert_array_equal(there.grounding_.counts, here.grounding_.counts)
    assert forms(spread) == forms(here.grounding_.hinges)
    assert str(there.explain("Trusts(p1, p2)")[0]) == str(here.explain("Trusts(p1, p2)")[0])


def test_learning_takes_what_workers_grounded(place):
    observed, targets = data()
    rng = np.random.default_rng(0)
    truth = {"Trusts": [(*pair, float(rng.random() < 0.5)) for pair in targets["Trusts"]]}
    weights = []
    for where in (place.client, "threads"):
        with on(where) as inner:
            if where != "threads":
                inner.least_forms = 0
            fitted = model(observed, targets, rules=RULES.replace("<= 3 .", "<= 9 .")).fit(
                truth, max_iter=3, tol=None
            )
            weights.append(fitted.weights_)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-2)


def test_errors_of_workers_are_those_of_one_process(place):
    observed, targets = data()
    targets["Trusts"].remove(("p1", "p5"))
    with pytest.raises(AtomError, match="Trusts"):
        model(observed, targets).predict()


def test_files_that_workers_cannot_use(place, files):
    given = {name: files[name] for name in ("Knows", "Kind", "Liked")}
    there = model(given, {"Trusts": files["Trusts"]})
    text = files["Kind"].read_text()
    files["Kind"].write_text(text.replace("p3,", "p30,"))
    with pytest.raises(PlaceError, match=r"worker tcp://.*Kind.* not the same there"):
        there.predict()
    files["Kind"].unlink()
    with pytest.raises(PlaceError, match=r"worker tcp://.*Kind cannot be read there"):
        there.predict()
    files["Kind"].write_text(text)
    assert len(there.predict(frame="dict")["value"]) == 12 * 11


def test_a_cluster_that_is_gone_is_named():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        with on(cluster.scheduler_address) as place:
            place.least_forms = 0
            there = model(*data())
            values = there.predict(frame="dict")["value"]
        np.testing.assert_array_equal(there.predict(frame="dict")["value"], values)
        with pytest.raises(PlaceError, match="has ended"):
            there.explain("Trusts(p1, p2)")
