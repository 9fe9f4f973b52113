"""What users may give to estimators: odd labels, absent labels, and what is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from naive_model import sequences
from scipy import sparse
from sklearn.model_selection import cross_val_score

from structlearn import (
    GraphLabeler,
    GridLabeler,
    MulticlassClassifier,
    SequenceClassifier,
    SequenceLabeler,
)
from structlearn._src.common.errors import ArgumentError, IgnoredOptionWarning, QueryError
from structlearn._src.estimators.storage import load, save
from structlearn._src.solve.lbfgs import Lbfgs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

EDGES = np.array([(0, 1), (2, 1), (2, 3)])
EVERY_STEP = [(a, b) for a in range(3) for b in range(3)]


# ---- labels --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "masked", "None"])
def test_all_ways_to_hide_a_label_are_one(kind):
    X, Y = sequences()
    hide = [np.arange(4) == i % 4 for i in range(len(X))]
    plain = [np.where(h, -1, y) for y, h in zip(Y, hide, strict=True)]
    given = {
        "float": [y.astype(float) for y in plain],
        "masked": [np.ma.masked_array(y, h) for y, h in zip(Y, hide, strict=True)],
        "None": [[None if label < 0 else label for label in y.tolist()] for y in plain],
    }[kind]
    options = {"random_state": 0, "max_iter": 5}
    a, b = (SequenceLabeler(**options).fit(X, labels) for labels in (plain, given))
    assert a.classes_.tolist() == b.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.score(X, plain) == b.score(X, given)


def test_masked_pixels_are_hidden():
    image = np.random.default_rng(0).normal(size=(3, 3))
    labels = np.ma.masked_array((image > 0).astype(int), image > 1)
    options = {"random_state": 0, "max_iter": 5, "edges": "potts"}
    a = GridLabeler(**options).fit([image], [labels])
    b = GridLabeler(**options).fit([image], [labels.filled(-1)])
    np.testing.assert_array_equal(a.weights_, b.weights_)


def test_labels_that_are_refused():
    X, Y = sequences(2)
    for bad in (np.nan, -2.0):
        with pytest.raises(ArgumentError, match=rf"token 1 in sequence 0 has the label {bad:g}"):
            SequenceLabeler().fit(X, [np.array([0.0, bad, 1.0, 2.0]), Y[1]])
    with pytest.raises(ArgumentError, match="entry 1 of y is None"):
        SequenceClassifier().fit(X, ["a", None])
    assert MulticlassClassifier().fit(X[0], [-2, -1, 0, 0]).classes_.tolist() == [-2, -1, 0]


@pytest.mark.filterwarnings("default::structlearn.errors.IgnoredOptionWarning")
def test_rules_and_weights_of_absent_labels_have_no_effect():
    X, Y = sequences()
    rule = {"forbidden": [(0, 9), (9, 9)], "class_weight": {0: 2.0, 9: 5.0}}
    with pytest.warns(IgnoredOptionWarning, match="class_weight names 9"):
        a = SequenceLabeler(**rule).fit(X, Y)
    b = SequenceLabeler(class_weight={0: 2.0}).fit(X, Y)
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-8)
    Y = [y.copy() for y in Y]
    Y[0][1] = 9  # the fold without example 0 never sees this label
    assert np.isfinite(cross_val_score(SequenceLabeler(**rule), X, Y, cv=len(X))).all()


# ---- what no labelling can do ----------------------------------------------------------------


@pytest.mark.parametrize("hidden", [None, "node", "layer"])
def test_no_labelling_is_allowed(hidden):
    X, Y = sequences(length=1)
    options = {"hidden": hidden, "random_state": 0, "max_iter": 5}
    labeler = SequenceLabeler(forbidden=EVERY_STEP, **options).fit(X, Y)
    free = SequenceLabeler(**options).fit(X, Y)
    np.testing.assert_allclose(
        np.concatenate(labeler.predict_marginals(X)),
        np.concatenate(free.predict_marginals(X)),
        atol=1e-6,
    )
    longer = [X[0], sequences()[0][0]]
    queries = [labeler.predict, labeler.predict_marginals]
    queries += [labeler.decode] if hidden is None else [labeler.predict_hidden]
    for query in queries:
        assert len(query(X)) == len(X)
        with pytest.raises(QueryError, match="example 1 has no labelling"):
            query(longer)


def test_rules_of_the_fit_hold_after_it():
    X, Y = sequences(length=2)
    Y = [np.sort(y) for y in Y]
    down = [(1, 0), (2, 0), (2, 1)]
    labeler = SequenceLabeler(forbidden=down).fit(X, Y).set_params(forbidden=EVERY_STEP)
    assert (labeler.dominance(X, Y).true > 0).all()


# ---- edges -----------------------------------------------------------------------------------


def test_edges_that_need_features():
    X, Y = sequences()
    with pytest.raises(ArgumentError, match="edges='features' needs edge features"):
        GraphLabeler(edges="features").fit([(x, EDGES) for x in X], Y)


@pytest.mark.parametrize("stored", [False, True])
def test_untied_weights_are_for_the_same_edges_only(stored, tmp_path):
    X, Y = sequences()
    labeler = GraphLabeler(tied=False, max_iter=5).fit([(x, EDGES) for x in X], Y)
    if stored:
        save(labeler, tmp_path / "model")
        labeler = load(tmp_path / "model")
    assert len(labeler.predict([(X[0], EDGES)])) == 1
    for other in (EDGES[::-1], EDGES[:, ::-1], EDGES[:2]):
        with pytest.raises(ArgumentError, match=r"tied=False.*edges differ"):
            labeler.predict([(X[0], other)])
    with pytest.raises(ArgumentError, match=r"tied=False.* 4 nodes and example 0 has 3"):
        labeler.predict([(X[0][:3], EDGES[:2])])


def test_features_are_called_what_they_are():
    X, Y = sequences(2)
    bad = np.array([[1.0], [np.nan], [0.0]])
    with pytest.raises(ArgumentError, match="nan: feature 0 of edge 1 of example 0"):
        GraphLabeler().fit([(x, EDGES, bad) for x in X], Y)
    with pytest.raises(ArgumentError, match=r"edge features of example 1 have shape \(3, 2\)"):
        GraphLabeler().fit([(X[0], EDGES, np.ones((3, 1))), (X[1], EDGES, np.ones((3, 2)))], Y)
    none = [x[:, :0] for x in X]
    with pytest.raises(ArgumentError, match=r"node features of the first .* shape \(4, 0\)"):
        SequenceLabeler().fit(none, Y)
    alone = SequenceLabeler(fit_intercept=True).fit(none, Y)
    ones = SequenceLabeler().fit([np.ones((4, 1)) for _ in X], Y)
    np.testing.assert_array_equal(alone.weights_, ones.weights_)


def test_what_can_be_read_only_once_is_refused():
    tokens, labels = [[["a"], ["b"]], [["b"], ["a"]]], [[0, 1], [1, 0]]
    labeler = SequenceLabeler().fit(tokens, labels)
    for use in (labeler.predict, lambda X: SequenceLabeler().fit(X, labels)):
        with pytest.raises(ArgumentError, match="X is a list_iterator; it must be a list of exam"):
            use(iter(tokens))
        with pytest.raises(ArgumentError, match="example 1 is a list_iterator; it must be a list"):
            use([tokens[0], iter(tokens[1])])
    with pytest.raises(ArgumentError, match="Y is a list_iterator; it must be a list of labels"):
        labeler.fit(tokens, iter(labels))
    assert labeler.score(tokens, labels) == 1.0


TOKENS = [[["a"], ["b"]], [["b"], ["a"]]]


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (
            TOKENS,
            [np.array([0, 2**64 - 1], np.uint64)] * 2,
            "labels are beyond 922337203",
        ),
        (TOKENS, [[0, 2**70]] * 2, "labels are beyond"),
        (TOKENS, [[0, 1e300]] * 2, "labels are beyond"),
        (TOKENS, [{0, 1}, {1, 0}], "labels of example 0 are {0, 1}; a list"),
        (TOKENS, [{0: 1, 1: 0}] * 2, "labels of example 0 are {0: 1, 1: 0}; a list"),
        (TOKENS, [np.eye(2, dtype=int)] * 2, r"labels of example 0 have shape \(2, 2\)"),
        ([None, None], [[0, 1]] * 2, "example 0 is None"),
        (sparse.csr_matrix(np.eye(2)), [[0, 1]] * 2, "X is a csr_matrix; it must be a list"),
        ([sparse.csr_matrix(1j * np.eye(2))], [[0, 1]], "example 0 has the type complex128"),
        ([sparse.coo_array(np.ones(2))], [[0, 1]], r"first example have shape \(2,\)"),
        ([np.eye(2) * 1e200], [[0, 1]], r"contains 1e\+200: feature 0 of node 0 of example 0"),
    ],
)
def test_sequences_that_cannot_be_read_are_named(X, Y, words):
    with pytest.raises(ArgumentError, match=words):
        SequenceLabeler().fit(X, Y)


def test_labels_of_masked_nodes_do_not_count():
    nodes, edges = np.ones((3, 1)), [(0, 1), (1, 2)]
    labeler = GraphLabeler().fit([(nodes, edges, None, [True, False, False])], [[7, 0, 1]])
    assert labeler.classes_.tolist() == [0, 1]
    with pytest.raises(ArgumentError, match="Y has no known label at all"):
        labeler.fit([(nodes, edges, None, [True] * 3)], [[1, 0, 1]])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.ma.array([0, 1], mask=[False, True]), "y masks some classes"),
        (["u", 1], "y are text and others are not"),
        (np.array(["u", 1], object), "y are text and others are not"),
    ],
)
def test_classes_that_cannot_be_told_apart_are_named(y, words):
    with pytest.raises(ArgumentError, match=words):
        SequenceClassifier().fit([np.eye(2)] * 2, y)


@pytest.mark.parametrize("classes", [3, "ab"])
def test_classes_of_the_first_part_are_a_list(classes):
    for labeler, Y in ((SequenceLabeler(), [[0, 1]]), (SequenceClassifier(), [0])):
        with pytest.raises(ArgumentError, match=f"classes={classes!r} must be a list"):
            labeler.partial_fit([np.eye(2)], Y, classes=classes)
    with pytest.raises(ArgumentError, match="entry 0 of classes is None"):
        SequenceClassifier().partial_fit([np.eye(2)], [0], classes=[None, 0])


def test_rare_attributes_must_leave_some():
    with pytest.raises(ArgumentError, match="min_count=100 leaves no attribute"):
        SequenceLabeler(min_count=100).fit(TOKENS, [[0, 1], [1, 0]])


def test_images_need_channels_and_choices_are_one():
    with pytest.raises(ArgumentError, match="at least one channel"):
        GridLabeler().fit([np.empty((2, 3, 0))], [np.zeros((2, 3), int)])
    with pytest.raises(ArgumentError, match=r"neighbours=.* must be 4 or 8"):
        GridLabeler(neighbours=np.array([4, 8])).fit([np.ones((2, 2))], [np.eye(2, dtype=int)])
    labeler = SequenceLabeler().fit(TOKENS, [[0, 1], [1, 0]])
    with pytest.raises(ArgumentError, match="joint='no' must be True or False"):
        labeler.predict(TOKENS, joint="no")


def test_the_perceptron_is_not_minimised():
    with pytest.raises(ArgumentError, match="solver='lbfgs' minimises, but the perceptron"):
        SequenceLabeler(loss="perceptron", solver="lbfgs").fit(TOKENS, [[0, 1], [1, 0]])


# ---- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": -np.inf}, "C=-inf"),
        ({"tol": np.inf}, "tol=inf"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": -2}, "n_jobs=-2"),
        ({"alpha": 2}, "alpha=2"),
        ({"sweeps": -3}, "sweeps=-3"),
        ({"callbacks": print}, "callbacks=.* must be a list"),
        ({"callbacks": [3]}, "callbacks=.* must be a list"),
        ({"progress": 3}, "progress=3 must be a function"),
        ({"checkpoint": 3}, "checkpoint=3 must be the path"),
        ({"solver": Lbfgs}, r"such as Lbfgs\(\)"),
        ({"cost": [[1], [2, 3]]}, r"cost=.* array of numbers"),
        ({"class_weight": {0: "a"}}, r"class_weight\[0\]='a' is not a number"),
        ({"class_weight": {0: np.inf}}, r"class_weight\[0\]=inf"),
        ({"class_weight": {0: 0, 1: 0, 2: 0}}, "every example a weight of 0"),
    ],
)
def test_bad_parameters_are_named(options, words):
    with pytest.raises(ArgumentError, match=words):
        SequenceLabeler(**options).fit(*sequences())


def test_bad_weights_and_counts_are_named():
    X, Y = sequences()
    with pytest.raises(ArgumentError, match=r"sample_weight=.*numbers"):
        SequenceLabeler().fit(X, Y, ["a"] * len(X))
    labeler = SequenceLabeler().fit(X, Y)
    for n in ("a", -1):
        with pytest.raises(ArgumentError, match=f"n={n!r}"):
            labeler.top_features(n)


def test_all_cores_and_no_tolerance():
    X, Y = sequences()
    labeler = SequenceLabeler(n_jobs=-1, tol=None, max_iter=7, solver="sgd", random_state=0)
    assert labeler.fit(X, Y).n_iter_ == 7
    one = SequenceLabeler(n_jobs=1, tol=0.0, max_iter=7, solver="sgd", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(labeler.weights_, one.weights_)
    assert len(labeler.predict_marginals(X)) == len(X)


def test_partial_fit_says_what_it_cannot():
    X, Y = sequences()
    for driver in ("cccp", "paired"):
        with pytest.raises(ArgumentError, match=f"driver='{driver}' needs all examples"):
            SequenceLabeler(driver=driver).partial_fit(X, Y)
    with pytest.raises(ArgumentError, match=r"among `classes`; the known labels are 0, 1$"):
        SequenceLabeler().partial_fit(X, Y, classes=[0, 1])
    rows = MulticlassClassifier()
    with pytest.raises(ArgumentError, match=r"among `classes`; the known classes are \[0, 1\]"):
        rows.partial_fit(X[0], [0, 1, 2, 0], classes=[0, 1])
    rows.partial_fit(X[0], [0, 1, 2, 0])
    with pytest.raises(ArgumentError, match=r"the first call had \[0, 1, 2\]"):
        rows.partial_fit(X[0], [0, 1, 2, 0], classes=[0, 1])


# ---- predictions are those of the fit ----------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True])
def test_parameters_changed_later_do_not_matter(stored, tmp_path):
    X, Y = sequences(12, seed=3)
    options = {"hidden": "node", "random_state": 0, "max_iter": 3, "loss": "hinge"}
    labeler = SequenceLabeler(eps_h=0.7, **options).fit(X, Y)
    before = labeler.predict(X), labeler.top_features(5), labeler.predict_hidden(X)
    if stored:
        save(labeler, tmp_path / "model")
        labeler = load(tmp_path / "model")
    assert labeler.plan_.eps_h == 0.7
    labeler.set_params(loss="foo", eps_h=-3.0, hidden=None, hidden_states=9, C=-1.0, tied=False)
    after = labeler.predict(X), labeler.top_features(5), labeler.predict_hidden(X)
    np.testing.assert_equal(after, before)


def test_hidden_states_of_the_fit_are_ranked():
    X, _ = sequences()
    classifier = SequenceClassifier(hidden_states=3, random_state=0, max_iter=3)
    classifier.fit(X, ["a", "b"] * 3).set_params(hidden_states=1)
    assert {state for _, state, _ in classifier.top_features(9)} == {0, 1, 2}


def test_inference_that_is_unknown_in_prediction():
    X, Y = sequences()
    labeler = SequenceLabeler().fit(X, Y).set_params(inference="guess")
    with pytest.raises(ArgumentError, match="inference='guess'"):
        labeler.predict(X)


def test_every_fitted_attribute_survives(tmp_path):
    X, Y = sequences()
    labeler = SequenceLabeler().fit(X, Y)
    save(labeler, tmp_path / "model")
    again = load(tmp_path / "model")
    text = SequenceLabeler.__doc__.split("Attributes\n----------\n")[1].split("\nNotes\n")[0]
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    names = [name.strip() for line in heads for name in line.split(",")]
    assert "value_" in names
    for name in set(names) - {"history_"}:
        np.testing.assert_array_equal(getattr(again, name), getattr(labeler, name))
    np.testing.assert_array_equal(again.history_.value, labeler.history_.value)


def test_numbers_as_text_are_refused():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 2)).astype(str) for _ in range(4)]
    Y = [[0, 1, 0, 1, 0]] * 4
    edges = [[i, i + 1] for i in range(4)]
    for model, data in ((SequenceLabeler(), X), (GraphLabeler(), [(x, edges) for x in X])):
        with pytest.raises(ArgumentError, match="text that reads as numbers"):
            model.fit(data, Y)
    attributes = [x.tolist() for x in X]  # whoever writes lists means attributes
    assert len(SequenceLabeler().fit(attributes, Y).classes_) == 2


def test_what_has_no_length_is_no_list_of_examples():
    X, Y = [np.zeros((2, 1))], [[0, 1]]
    for odd in (np.array("x"), np.array(3.0), sparse.csr_array(np.eye(2))):
        with pytest.raises(ArgumentError, match="X is a"):
            SequenceLabeler().fit(odd, Y)
        with pytest.raises(ArgumentError, match="Y is a"):
            SequenceLabeler().fit(X, odd)
    with pytest.raises(ArgumentError, match="loss="):
        SequenceLabeler(loss=np.array([None, 1])).fit(X, Y)
