"""MAP inference in hinge-loss fields against exact solvers and closed forms."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import isotonic_regression, linprog

import naive
from structlearn._src.common.errors import ArgumentError, GraphError, InfeasibleError
from structlearn._src.field.admm import solve_map
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE, Hinges


def rows(*given, n_variables, n_groups=1):
    """A field from (form, constant, kind, power, group)."""
    forms, constants, kinds, powers, groups = zip(*given, strict=True)
    return Hinges(
        np.cumsum([0, *(len(form) for form in forms)]),
        np.array([j for form in forms for j in form], int),
        np.array([a for form in forms for a in form.values()], float),
        constants, kinds, powers, groups, n_variables, n_groups,
    )  # fmt: skip


def program(hinges, weights):
    """Quadratic program over y and a slack per hinge: squares, costs, rows, limits, equalities."""
    n = hinges.n_variables
    matrix = sp.csr_matrix(
        (hinges.coefficients, hinges.variables, hinges.offsets), (hinges.n_forms, n)
    )
    each = weights[hinges.groups]
    soft, at_most, equal = (np.flatnonzero(hinges.kinds == k) for k in (HINGE, AT_MOST, EQUAL))
    k, squared = len(soft), hinges.powers[soft] == 2
    squares = np.concatenate([np.zeros(n), np.where(squared, 2 * each[soft], 0.0)])
    costs = np.concatenate([np.zeros(n), np.where(squared, 0.0, each[soft])])

    def wide(chosen, slack):
        return sp.hstack([matrix[chosen], slack]).tocsr()

    none = [sp.csr_matrix((len(chosen), k)) for chosen in (at_most, equal)]
    upper = sp.vstack([wide(soft, -sp.eye(k)), wide(at_most, none[0])])
    limits = -hinges.constants[np.concatenate([soft, at_most])]
    return squares, costs, upper, limits, wide(equal, none[1]), -hinges.constants[equal]


def exact(hinges, weights):
    """The least energy by Clarabel's interior-point method."""
    squares, costs, upper, limits, equal, right = program(hinges, weights)
    size, n = len(costs), hinges.n_variables
    box = [-sp.eye(size), sp.hstack([sp.eye(n), sp.csr_matrix((n, size - n))])]
    matrix = sp.vstack([equal, upper, *box]).tocsc()
    sides = np.concatenate([right, limits, np.zeros(size), np.ones(n)])
    cones = [clarabel.NonnegativeConeT(len(sides) - len(right))]
    if len(right):
        cones.insert(0, clarabel.ZeroConeT(len(right)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    quadratic = sp.diags(squares).tocsc()
    return clarabel.DefaultSolver(quadratic, costs, matrix, sides, cones, settings).solve().obj_val


def check(result, hinges, weights, optimum, rel=1e-5):
    scale = abs(optimum) + (weights.max(initial=0.0) or 1.0)
    assert result.converged, result.status
    assert result.energy == pytest.approx(optimum, abs=rel * scale)
    assert result.energy == pytest.approx(hinges.energy(result.y, weights), rel=1e-12, abs=1e-12)
    assert result.lower <= optimum + 1e-8 * scale
    assert result.gap <= 1e-5 * scale
    assert result.violation <= 1e-6
    assert hinges.violations(result.y).max(initial=0.0) <= 1e-6
    assert ((result.y >= 0) & (result.y <= 1)).all()


# ---- exact solvers ---------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(10))
def test_random_fields_are_solved_as_by_an_interior_point_method(block):
    for seed in range(50 * block, 50 * block + 50):
        field, weights = naive.hinge_field(np.random.default_rng(seed))
        hinges = Hinges(**field)
        check(solve_map(hinges, weights, n_jobs=1), hinges, weights, exact(hinges, weights))


def test_linear_fields_are_solved_as_by_the_simplex_method():
    for seed in range(100):
        field, weights = naive.hinge_field(np.random.default_rng(seed), powers=(1,))
        hinges = Hinges(**field)
        _, costs, upper, limits, equal, right = program(hinges, weights)
        bounds = [(0, 1)] * hinges.n_variables + [(0, None)] * (len(costs) - hinges.n_variables)
        found = linprog(
            costs, upper if upper.shape[0] else None, limits if upper.shape[0] else None,
            equal if len(right) else None, right if len(right) else None, bounds,
        )  # fmt: skip
        check(solve_map(hinges, weights, n_jobs=1), hinges, weights, found.fun)


def test_equal_weights_with_different_signs_do_not_share_a_factor():
    """A convex problem on which PSL 2.4 stops at 12.7 (its cache mixes up sign patterns)."""
    rng = np.random.default_rng(0)
    edges = [rng.choice(60, 3, replace=False).tolist() for _ in range(200)]
    bias = [round(rng.random() ** 2, 4) for _ in range(60)]
    forms = [({a: 1, b: 1, c: -1}, -1.0, HINGE, 2, 0) for a, b, c in edges]
    forms += [({a: -1, b: -1, c: -1}, 1.0, HINGE, 2, 0) for a, b, c in edges]
    forms += [({i: -1}, x, HINGE, 2, 1) for i, x in enumerate(bias)]
    forms += [({i: 1}, -x, HINGE, 2, 1) for i, x in enumerate(bias)]
    hinges, weights = rows(*forms, n_variables=60, n_groups=2), np.array([2 / 3, 1.0])
    result = solve_map(hinges, weights)
    assert result.energy == pytest.approx(1.329, abs=5e-4)
    check(result, hinges, weights, exact(hinges, weights))


def test_forms_and_weights_of_very_different_sizes():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        sizes = 10.0 ** rng.integers(-3, 4, size=(24, 1))
        dense = np.round(rng.normal(size=(24, 8)), 2) * (rng.random((24, 8)) < 0.5) * sizes
        hinges = rows(
            *(({j: row[j] for j in np.flatnonzero(row)}, 10 * rng.normal(), HINGE,
               rng.integers(1, 3), rng.integers(4)) for row in dense),
            n_variables=8, n_groups=4,
        )  # fmt: skip
        result = solve_map(hinges, 10.0 ** rng.uniform(-4, 4, size=4), n_jobs=1)
        assert result.converged, (seed, result.status)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["chain-2k", "citeseer", "coll-5k", "cora", "simple-acquaintances", "trust-5"]
)
def test_stored_problems(name, data_folder):
    stored = np.load(data_folder / "psl/ground" / f"{name}.npz")
    weights, groups = np.unique(stored["w"], return_inverse=True)
    hinges = Hinges(
        stored["indptr"], stored["indices"], stored["data"], stored["off"], stored["kind"],
        stored["p"], groups.ravel(), int(stored["shape"][1]), len(weights),
    )  # fmt: skip
    check(solve_map(hinges, weights), hinges, weights, float(stored["obj_opt"]), rel=1e-7)


# ---- closed forms -----------------------------------------------------------------------------


def test_one_squared_hinge_against_a_linear_one():
    """w (1 - y)^2 + u y is least at 1 - u / 2w."""
    field = rows(({0: -1}, 1, HINGE, 2, 0), ({0: 1}, 0, HINGE, 1, 1), n_variables=1, n_groups=2)
    result = solve_map(field, [2.0, 1.0], tol=1e-9)
    assert result.y[0] == pytest.approx(0.75, abs=1e-6)
    assert result.energy == pytest.approx(2 / 16 + 0.75)


def test_absolute_values_meet_in_the_weighted_median():
    centres, weights = np.array([0.9, 0.1, 0.4, 0.6]), np.array([1.0, 2.0, 2.0, 0.5])
    forms = [({0: 1}, -c, HINGE, 1, g) for g, c in enumerate(centres)]
    forms += [({0: -1}, c, HINGE, 1, g) for g, c in enumerate(centres)]
    result = solve_map(rows(*forms, n_variables=1, n_groups=4), weights, tol=1e-9)
    assert result.y[0] == pytest.approx(0.4, abs=1e-6)


def chain(values):
    """Squares around the values that must rise from left to right."""
    forms = [({i: 1}, -v, HINGE, 2, 0) for i, v in enumerate(values)]
    forms += [({i: -1}, v, HINGE, 2, 0) for i, v in enumerate(values)]
    forms += [({i: 1, i + 1: -1}, 0.0, AT_MOST, 1, 0) for i in range(len(values) - 1)]
    return rows(*forms, n_variables=len(values))


def test_a_rising_chain_is_isotonic_regression():
    values = np.random.default_rng(3).random(40)
    result = solve_map(chain(values), [1.0], tol=1e-10)
    np.testing.assert_allclose(result.y, isotonic_regression(values).x, atol=1e-5)


def test_squares_and_a_sum_project_to_the_simplex():
    values = np.random.default_rng(4).normal(0.2, 0.4, 30)
    forms = [({i: 1}, -v, HINGE, 2, 0) for i, v in enumerate(values)]
    forms += [({i: -1}, v, HINGE, 2, 0) for i, v in enumerate(values)]
    forms += [(dict.fromkeys(range(30), 1.0), -1.0, EQUAL, 1, 0)]
    result = solve_map(rows(*forms, n_variables=30), [1.0], tol=1e-10)
    order = np.sort(values)[::-1]
    levels = (np.cumsum(order) - 1) / np.arange(1, 31)
    level = levels[np.flatnonzero(order > levels)[-1]]
    np.testing.assert_allclose(result.y, np.maximum(values - level, 0.0), atol=1e-6)


# ---- state ------------------------------------------------------------------------------------


def test_given_variables_are_constants():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        field, weights = naive.hinge_field(rng, hard=False)
        fixed = {j: rng.random() for j in range(field["n_variables"]) if rng.random() < 0.4}
        pins = [({j: 1.0}, -value, EQUAL, 1, 0) for j, value in fixed.items()]
        hinges = Hinges(**field)
        soft = [
            (form, hinges.constants[i], HINGE, hinges.powers[i], hinges.groups[i])
            for i, form in enumerate(naive.hinge_forms(field))
        ]
        pinned = rows(*soft, *pins, n_variables=hinges.n_variables, n_groups=hinges.n_groups)
        result = solve_map(hinges, weights, fixed=fixed)
        check(result, hinges, weights, exact(pinned, weights))
        assert all(result.y[j] == value for j, value in fixed.items())


def test_warm_start_from_a_result_takes_fewer_steps():
    values = np.random.default_rng(3).random(200)
    forms = [({i: 1}, -v, HINGE, 2, 0) for i, v in enumerate(values)]
    forms += [({i: -1}, v, HINGE, 2, 0) for i, v in enumerate(values)]
    forms += [({i: 1, i + 1: -1}, 0.0, HINGE, 1, 1) for i in range(199)]
    hinges = rows(*forms, n_variables=200, n_groups=2)
    cold = solve_map(hinges, [1.0, 0.5])
    warm = solve_map(hinges, [1.0, 0.5], start=cold)
    assert warm.converged
    assert warm.iterations < cold.iterations
    assert warm.energy == pytest.approx(cold.energy, rel=1e-5)


# ---- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forms", "proof"),
    [
        ([({0: 1}, -0.3, EQUAL), ({1: 1}, -0.5, EQUAL), ({0: 1}, -0.5, EQUAL)], [0, 2]),
        ([({0: 1, 1: 1}, -1.5, AT_MOST), ({0: -1}, 0.9, AT_MOST), ({1: -1}, 0.9, AT_MOST)],
         [0, 1, 2]),
        ([({0: 1}, 0.5, AT_MOST)], [0]),
        ([({0: 1, 1: -1}, 0.4, AT_MOST), ({1: 1, 2: -1}, 0.4, AT_MOST),
          ({2: 1, 3: -1}, 0.4, AT_MOST), ({4: 1, 3: -1}, 0, AT_MOST)], [0, 1, 2]),
    ],
)  # fmt: skip
def test_contradictions_are_proved(forms, proof):
    hard = [(*form, 1, 0) for form in forms]
    field = rows(*hard, ({0: 1}, 0.0, HINGE, 2, 0), n_variables=5)
    with pytest.raises(InfeasibleError, match="contradict each other") as caught:
        solve_map(field, [1.0])
    assert caught.value.forms == proof


def test_given_values_that_break_a_constraint_are_named():
    field = rows(({0: 1, 1: 1}, -1.0, EQUAL, 1, 0), n_variables=2)
    with pytest.raises(InfeasibleError, match="no free variable") as caught:
        solve_map(field, [1.0], fixed={0: 1.0, 1: 0.5})
    assert caught.value.forms == [0]
    assert solve_map(field, [1.0], fixed={0: 1.0}).y.tolist() == [1.0, 0.0]


def test_the_best_is_kept_when_time_is_up_or_the_keyboard_interrupts():
    field = chain(np.random.default_rng(3).random(40))

    def interrupt(fraction, words):
        raise KeyboardInterrupt

    late = solve_map(field, [1.0], time_limit=1e-9)
    assert not late.converged
    assert "time limit" in late.status
    stopped = solve_map(field, [1.0], progress=interrupt)
    assert "interrupted" in stopped.status
    assert (stopped.iterations, late.iterations) == (10, 1)  # the limit holds inside a chunk
    assert stopped.lower <= solve_map(field, [1.0]).energy + 1e-9
    told = []
    solve_map(field, [1.0], progress=lambda fraction, words: told.append(words))
    assert "energy" in told[0]
    assert any("gap" in words for words in told)  # once there is a bound


@pytest.mark.parametrize("options", [{"max_iter": 1}, {"max_iter": 20}, {"time_limit": 1e-9}])
def test_endings_promise_bounds_whatever_came_first(options):
    endings = set()
    for seed in range(40):
        field, weights = naive.hinge_field(np.random.default_rng(seed))
        hinges = Hinges(**field)
        optimum = exact(hinges, weights)
        found = solve_map(hinges, weights, n_jobs=1, **options)
        endings.add(str(found.ended))
        assert found.converged == (found.ended == "done")
        assert found.lower <= optimum + 1e-7 * (abs(optimum) + weights.max())
        assert found.energy == pytest.approx(hinges.energy(found.y, weights), abs=1e-9)
        if found.converged:
            check(found, hinges, weights, optimum)
    assert endings <= {"done", "time" if "time_limit" in options else "limit"}
    assert len(endings) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": [1.0, 2.0]}, "weight"),
        ({"weights": [-1.0]}, "weight"),
        ({"weights": [np.nan]}, "weight"),
        ({"fixed": {0: 1.5}}, "fixed"),
        ({"fixed": {3: 0.5}}, "fixed"),
        ({"start": np.array([2.0])}, "start"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_arguments_are_refused(options, words):
    field = rows(({0: -1}, 1, HINGE, 2, 0), n_variables=1)
    with pytest.raises(ArgumentError, match=words):
        solve_map(field, **{"weights": [1.0], **options})


def test_nothing_to_do_is_done():
    empty = Hinges([0], [], [], [], [], [], [], 2, 1)
    assert solve_map(empty, [1.0]).energy == 0.0
    assert solve_map(rows(({0: 1}, 0.0, HINGE, 1, 0), n_variables=1), [0.0]).converged


# ---- scales that are far apart -------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("heavy", [1e3, 1e8, 1e12])
def test_a_heavy_rule_does_not_hide_a_light_one(heavy, power):
    """Two values that must be the same, and light rules that want 0.9: certified only if so."""
    A = [[1.0, -1.0], [-1.0, 1.0], [-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]
    b = [0.0, 0.0, 0.9, -0.9, 0.9, -0.9]
    rows, columns = np.nonzero(A)
    field = Hinges(
        np.append(0, np.cumsum(np.bincount(rows))), columns, np.array(A)[rows, columns], b,
        np.zeros(6), np.full(6, power), [0, 0, 1, 1, 1, 1], 2, 2,
    )  # fmt: skip
    found = solve_map(field, [heavy, 1.0], n_jobs=1)
    assert not found.converged or np.abs(found.y - 0.9).max() < 2e-3
    assert found.converged or heavy > 1e8
    if found.converged:
        assert found.gap <= 1e-6 * (found.energy + 1.0)


@pytest.mark.parametrize("scale", [1e-308, 1e-300, 2.0**-40, 1.0, 2.0**50, 1e99])
def test_the_size_of_all_weights_does_not_matter(scale):
    field = chain(np.random.default_rng(1).random(12))
    found, known = (solve_map(field, [size], n_jobs=1) for size in (scale, 1.0))
    np.testing.assert_allclose(found.y, known.y, atol=1e-7)
    assert found.energy == pytest.approx(scale * known.energy)
    assert found.converged
    if np.frexp(scale)[0] == 0.5:
        np.testing.assert_array_equal(found.y, known.y)  # a power of two rounds nothing


def test_numbers_that_would_overflow_are_refused():
    field = chain(np.ones(3))
    with pytest.raises(ArgumentError, match="weight of group 0"):
        solve_map(field, [1e308])
    with pytest.raises(GraphError, match="constants"):
        Hinges([0, 1], [0], [1.0], [1e200], [0], [1], [0], 1, 1)


def test_a_field_whose_steps_are_no_numbers_ends():
    """Forms that contradict each other by 0.001, where a search for a length had no end."""
    A = np.array([
        [0.0, 3.7960182636338042, 3.4113455761722666, -16.10766445971445, 12.431032810312894,
         16.725336708528925],
        [0.0, 0.0, 6.946888835443485, -3.9905452188893213, -4.335528281643066, 0.0],
        [2.8697051856071676, 0.0, 9.776612743053862, 0.0, -20.016923615310706, 0.0],
        [0.0, 0.0, -1.0879846320413766, 0.0, -5.282549254936417, 0.0],
        [4.5531809225635484, -13.298006008305276, 1.658383928813877, -1.9041107759552864,
         -9.298048149156287, -3.766234296380915],
        [10.693451102264298, 0.0, 0.0, 0.0, 0.09566565514539066, 12.497219153003357],
        [12.008183011909331, 0.0, 18.32299487393884, 0.0, 3.231473785449981, -14.677430654667443],
        [0.0, 0.0, -7.055082197268257, -5.952121537992272, 5.117542719295538, -16.68659660794415],
        [0.0, 2.4334273706015788, -4.321847375715412, 0.0, -9.937661274843856, 0.0],
        [1.161138116894236, 0.0, 0.0, 0.0, 6.217084366146856, -12.013856061883153],
    ])  # fmt: skip
    b = [
        -0.0013882934589083949, -0.0021523898347994676, 0.0005883485831870339,
        -9.216793847597991e-05, 0.001601851022500663, 0.0011014555903510169, 0.0007127820488338935,
        0.0007492935333651136, 0.0012514419616314152, -0.001102912965294023,
    ]  # fmt: skip
    rows, columns = np.nonzero(A)
    kinds = [0, 0, 0, 0, 0, EQUAL, 0, 0, AT_MOST, AT_MOST]
    field = Hinges(
        np.append(0, np.cumsum(np.bincount(rows, minlength=10))), columns, A[rows, columns], b,
        kinds, [2, 1, 1, 1, 1, 1, 1, 2, 2, 2], [1, 0, 0, 1, 0, 0, 1, 0, 0, 1], 6, 2,
    )  # fmt: skip
    with pytest.raises(InfeasibleError) as caught:  # form 5 is above 0.0011 in the whole box
        solve_map(field, [0.0, 248.9047729114383], max_iter=200, n_jobs=1)
    assert caught.value.forms == [5]
