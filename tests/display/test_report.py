"""Report pages: what they say is what models and oracles say, and their controls work."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from structlearn import (
    FactorGraph,
    GridLabeler,
    InfiniteHMM,
    InfiniteSVM,
    MulticlassClassifier,
    RuleModel,
    SequenceLabeler,
    grid,
    infer,
    report,
)
from structlearn._src.display.svg import ticks
from structlearn.errors import ArgumentError

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
RULES = """
20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2
5: !Likes(A, X) ^2
"""


class Balanced(HTMLParser):
    """Refuses tags that are not closed in order."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(page):
    """The text of a page that is a whole document and asks nothing of a network."""
    text = page.html()
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert "http" not in re.sub(r"http://www\.w3\.org\S*", "", text)
    return text


def section(page, heading):
    return dict(page.sections)[heading]


def cells(piece):
    """The cells of all tables in a piece of HTML, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", piece)
    texts = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    return [[html.unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in texts if row]


@pytest.fixture(scope="module")
def tagged():
    rng = np.random.default_rng(0)
    words = [["<b>", "dog", "runs", "far"][: 2 + i % 3] for i in range(12)]
    Y = [["B-X" if w == "dog" else "O" for w in s] for s in words]
    Y[0][0] = "B-X"  # one error at least
    X = [[[f"w={w}", f"r={rng.integers(2)}"] for w in s] for s in words]
    return SequenceLabeler(C=2.0, random_state=0).fit(X, Y), X, Y


@pytest.fixture(scope="module")
def rules():
    model = RuleModel(RULES)
    model.observe(Knows=[("ann", "bob"), ("eve", "bob")], Likes=[("ann", "tea", 0.9)])
    model.observe(Likes=[("eve", "tea", 0.9)])
    model.target(Likes=[("bob", "tea")])
    return model


def test_scores_and_confusion_count_what_the_model_predicts(tagged):
    model, X, Y = tagged
    page = report(model, X, Y)
    text = checked(page)
    assert f"{model.score(X, Y):.2%}" in section(page, "Scores")
    pairs = [
        (t, p) for a, b in zip(Y, model.predict(X), strict=True) for t, p in zip(a, b, strict=True)
    ]
    wrong = [(t, p) for t, p in pairs if t != p]
    rows = cells(section(page, "Confusion"))
    assert sum(int(row[2]) for row in rows) == len(wrong) > 0
    assert len(cells(section(page, "Errors"))) == len(wrong)
    assert "<b>dog" not in text.replace('<b class="wrong">', "")  # what users write is escaped


def test_probabilities_are_those_of_the_model(tagged):
    model, X, Y = tagged
    piece = section(report(model, X, Y), "Probabilities")
    told = [float(x) for x in re.findall(r"<title>\S+: \S+ ([0-9.]+)</title>", piece)]
    beliefs = np.concatenate(model.predict_marginals(X)).round(3)
    assert told
    assert set(told) <= set(beliefs.ravel().tolist())


def test_without_examples_there_are_no_scores(tagged):
    model, _, _ = tagged
    headings = [heading for heading, _ in report(model).sections]
    assert headings == ["Model", "Learning curve", "Transitions", "Features"]
    assert "C=2.0" in section(report(model), "Model")


def test_features_are_listed_with_their_weights(tagged):
    model, _, _ = tagged
    rows = cells(section(report(model), "Features"))
    assert [row[:2] for row in rows] == [[n, y] for n, y, _ in model.top_features(200)]


@pytest.mark.parametrize("labeled", [True, False])
def test_other_estimators_have_pages(labeled):
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(3, 4)) for _ in range(3)]
    Y = [(x > 0).astype(int) for x in X]
    grids = GridLabeler(edges="potts", random_state=0).fit(X, Y)
    rows = rng.normal(size=(20, 3))
    y = (rows[:, 0] > 0).astype(int)
    single = MulticlassClassifier().fit(rows, y)
    examples = (X, Y) if labeled else ()
    assert "Model" in dict(report(grids, *examples).sections)
    checked(report(single, *((rows, y) if labeled else ())))


def test_rules_are_listed_with_their_energy(rules):
    page = report(rules)
    checked(page)
    rows = cells(section(page, "Rules"))
    assert [row[3] for row in rows] == ["2", "1"]
    assert sum(float(row[5]) for row in rows) == pytest.approx(rules.result_.energy, rel=1e-3)
    assert cells(section(page, "Atoms"))[0][0] == "Likes('bob', 'tea')"


def test_explanations_name_the_observed_atoms(rules):
    rows = cells(section(report(rules), "Explanations"))
    assert {row[2] for row in rows} == {
        "Knows('ann', 'bob') & Likes('ann', 'tea') -> Likes('bob', 'tea')",
        "Knows('eve', 'bob') & Likes('eve', 'tea') -> Likes('bob', 'tea')",
        "!Likes('bob', 'tea')",
    }
    pulls = {row[2]: float(row[1]) * (1 if row[0] == "down" else -1) for row in rows}
    assert sum(pulls.values()) == pytest.approx(0.0, abs=1e-2)


def test_states_and_diagnostics_of_a_sampled_model():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [6.0], [0.0]], 12, axis=0) + rng.normal(size=(36, 1))
    model = InfiniteHMM(n_start=3, burn_in=10, n_draws=5, n_chains=2, random_state=0).fit(X)
    page = report(model, title="Two <states>")
    assert "<title>Two &lt;states&gt;</title>" in checked(page)
    rows = cells(section(page, "Diagnostics"))
    assert [row[0] for row in rows] == list(model.diagnostics())
    runs = re.findall(r"<title>state (\d+): (\d+) to (\d+)</title>", section(page, "States"))
    drawn = [int(k) for k, first, last in runs for _ in range(int(first), int(last) + 1)]
    assert drawn == model.states_[0].tolist()


def test_a_mixture_has_a_page():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = InfiniteSVM(burn_in=5, n_draws=5, n_chains=2, random_state=0).fit(X, X[:, 0] > 0)
    assert "Diagnostics" in dict(report(model).sections)


@pytest.mark.parametrize("query", ["marginals", "map"])
def test_answers_have_pages(query):
    graph = FactorGraph()
    for name in "abc":
        graph.add_variable(name, states=2)
    graph.add_factor(["a", "b"], np.array([[1.0, 0.0], [0.0, 0.5]]))
    graph.add_factor(["b", "c"], np.array([[0.0, 2.0], [0.0, 0.0]]))
    answer = infer(graph, query)
    page = report(answer)
    checked(page)
    if query == "map":
        assert cells(section(page, "Assignment")) == [
            [name, str(state)] for name, state in answer.assignment.items()
        ]
    else:
        rows = cells(section(page, "Marginals"))
        assert [row[1] for row in rows] == [str(p.argmax()) for p in answer.marginals.values()]


def test_what_has_no_page_is_refused(rules):
    with pytest.raises(ArgumentError, match="fitted estimators"):
        report(3)
    with pytest.raises(ArgumentError, match="leave out X and y"):
        report(rules, [1], [2])


def test_a_page_is_saved_and_shown(tmp_path, rules):
    page = report(rules)
    path = page.save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == page.html()
    assert page._repr_html_().startswith("<iframe ")
    with pytest.raises(ArgumentError, match="folder that does not exist"):
        page.save(tmp_path / "none" / "page.html")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (3, 3, [3]), (-1, 1, [-1, -0.5, 0, 0.5, 1])],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


#: Clicks and keys that a reader would use, and what the page shows after them.
WALK = """
const seen = {};
const table = document.querySelector("table.sortable");
const column = () => [...table.tBodies[0].rows].map(row => row.cells[2].textContent);
table.querySelectorAll("th button")[2].click();
seen.up = column();
table.querySelectorAll("th button")[2].click();
seen.down = column();
const input = document.querySelector("input.filter");
input.value = "no such atom";
input.dispatchEvent(new Event("input"));
seen.filtered = input.closest(".block").querySelector(".status").textContent;
const stepper = document.querySelector(".stepper");
const shown = () => [...stepper.querySelectorAll(".step")].findIndex(step => !step.hidden);
seen.steps = [shown()];
stepper.querySelector(".next").click();
seen.steps.push(shown());
const key = new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true });
stepper.querySelector(".next").dispatchEvent(key);
seen.steps.push(shown());
document.title = JSON.stringify(seen);
"""


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_controls_work_in_a_browser(tmp_path, rules):
    model = RuleModel(RULES)
    model.observe(Knows=[("ann", "bob")], Likes=[("ann", "tea", 1.0), ("ann", "ale", 0.4)])
    model.target(Likes=[("bob", "tea"), ("bob", "ale")])
    path = tmp_path / "page.html"
    page = report(model).html().replace("</body>", f"<script>{WALK}</script></body>")
    path.write_text(page, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    home = f"--user-data-dir={tmp_path / 'home'}"
    command = [BROWSER, *flags, home, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "CONSOLE" not in done.stderr
    seen = json.loads(html.unescape(re.search("<title>(.*?)</title>", done.stdout)[1]))
    assert seen["up"] == ["5", "20"]
    assert seen["down"] == ["20", "5"]
    assert seen["filtered"] == "0 of 2 rows"
    assert seen["steps"] == [0, 1, 0]


def test_labels_that_training_did_not_have_are_errors():
    """As in `score`; hidden ones are not compared."""
    seen = [[["a"], ["b"]], [["b"], ["b"]]]
    model = SequenceLabeler().fit(seen, [["x", "y"], ["y", "y"]])
    X, Y = [[["a"], ["b"]], [["b"], ["a"]]], [["z", "y"], ["<w>", None]]
    text = checked(report(model, X, Y))
    assert model.score(X, Y) == pytest.approx(1 / 3)
    assert "33.33% of 3 labels" in text
    assert "&lt;w&gt;" in text
    assert "2 of 2 errors" in text


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[["a"], ["b"]]], None, "only X was given"),
        (None, [["x", "y"]], "only y was given"),
        ([[["a"], ["b"]]], [["x", "y"], ["y"]], "X has 1 examples, but y has 2"),
        ([[["a"], ["b"]]], [["x"]], "example 0 has 1 labels in y, but 2 nodes"),
    ],
)
def test_examples_that_do_not_fit_their_labels_are_refused(X, Y, message):
    model = SequenceLabeler().fit([[["a"], ["b"]]], [["x", "y"]])
    with pytest.raises(ArgumentError, match=message):
        report(model, X, Y)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_pages_of_many_labels_are_short():
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(150, 2))], [np.arange(150)]
    text = checked(report(SequenceLabeler(max_iter=1).fit(X, Y), X, Y))
    assert text.count("The 60 of 150 labels") == 2
    assert len(text) < 3e6


def test_constraints_with_something_to_spare_are_not_missed():
    model = RuleModel("Q(A) + S(A) <= 1.5 .\n1: Q(A) = 0.25 ^2\n1: S(A) = 0.25 ^2")
    model.target(Q=[("a",)], S=[("a",)])
    headings = dict(report(model).sections)
    hard = headings["Rules"].split("<tr>")[2]
    cells = re.findall(r"<td[^>]*>([^<]*)", hard)
    assert cells[2] == "hard"
    assert [float(cell) for cell in cells[-2:]] == [0.0, 0.0]


def test_bounds_over_time_are_drawn_where_they_are_known():
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(12, 12, 3)), 2 * rng.normal(size=(3, 3)))
    answer = infer(graph, "map", method="portfolio", random_state=0)
    assert len(answer.bounds) > 1
    text = checked(report(answer))
    assert "Bounds over time" in text
    assert f"<title>best value: last {answer.lower:.4g}</title>" in text
    exact = infer(grid(np.zeros((2, 2, 2)), np.eye(2)), "map")
    assert "Bounds over time" not in checked(report(exact))
