"""Hinge-loss fields from plain arrays: best values with a certified gap, and learning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, as_array, offsets_of
from structlearn._src.common.errors import ArgumentError, GraphError, UncertifiedWarning, warn
from structlearn._src.common.history import History
from structlearn._src.common.watch import Ending, Progress
from structlearn._src.estimators.base import threads
from structlearn._src.estimators.doc import documented
from structlearn._src.field.admm import HingeResult, solve_map
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE, Hinges

#: What a form may be, by the names that users give.
KINDS = {"hinge": HINGE, "<=": AT_MOST, "=": EQUAL}


def _of_result(name: str, doc: str) -> Any:
    """A number of `result_` as an attribute."""
    return property(lambda estimator: getattr(estimator.result_, name), doc=doc)


class _FieldAttributes:
    """What inference and learning leave; in a dataclass these would count as parameters."""

    value_: float
    history_: History
    n_iter_: int
    converged_: bool
    status_: str
    ended_: Ending

    energy_: float = _of_result("energy", "Energy of the inferred values, with weights as given.")
    lower_bound_: float = _of_result("lower", "Proved lower bound on the optimal energy.")
    gap_: float = _of_result("gap", "Certified distance of the energy from the optimum.")
    violation_: float = _of_result("violation", "Largest violation of a hard constraint.")


@dataclass(kw_only=True, eq=False, repr=False)
class FieldEstimator(_FieldAttributes):
    """Parameters of inference in everything that is a hinge-loss field inside."""

    tol: float = 1e-6
    max_iter: int = 5000
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Progress | bool | None = None


@documented
class HingeField(FieldEstimator):
    r"""A hinge-loss Markov random field, from arrays.

    With linear forms :math:`l(y) = A y + b` over :math:`y \in [0, 1]^n` and weights
    :math:`w \ge 0`, one for each group, the energy is

    .. math:: E(y) = \sum_{i \text{ hinge}} w_{g_i} \max(l_i(y), 0)^{p_i}
              \quad \text{subject to } l_i(y) \le 0 \text{ or } l_i(y) = 0
              \text{ for the hard forms.}

    Parameters
    ----------
    A : array or sparse matrix of shape (forms, variables), or Hinges
        (forms, variables) Coefficients: an array, or a SciPy sparse matrix of any format. Or
        `Hinges`, which include the next four parameters.
    b : array-like of shape (forms,), or float
        (forms) Constants; here as below, a single number applies to all forms.
    powers : array-like of shape (forms,), or int
        (forms) 1 for linear hinges, 2 for squared ones; ignored for hard forms.
    kinds : list of str, or str
        (forms) "hinge", or "<=" and "=" for hard constraints :math:`l \le 0` and :math:`l = 0`.
    groups : array-like of shape (forms,), or None
        (forms) Index of the weight of each form, from 0; by default all the same.
    weights : array-like of shape (groups,), or float
        (groups) At least 0.
    {inference}

    Attributes
    ----------
    weights_
        The weights, given or learnt; can be set.
    {found}

    References
    ----------
    S. Bach, M. Broecheler, B. Huang and L. Getoor, "Hinge-loss Markov random fields and
    probabilistic soft logic", JMLR 2017.

    Examples
    --------
    One variable that is pulled to 0 with weight 1 and to 1 with weight 3, both squared:

    >>> from structlearn import HingeField
    >>> field = HingeField([[1.0], [-1.0]], [0.0, 1.0], powers=2, groups=[0, 1], weights=[1, 3])
    >>> field.predict().round(4)
    array([0.75])
    >>> round(field.energy_, 4), field.gap_ < 1e-5
    (0.75, True)
    """

    def __init__(
        self,
        A: Any,
        b: Any = 0.0,
        *,
        powers: Any = 1,
        kinds: Any = "hinge",
        groups: Any = None,
        weights: Any = 1.0,
        tol: float = 1e-6,
        max_iter: int = 5000,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        progress: Progress | bool | None = None,
    ) -> None:
        super().__init__(
            tol=tol, max_iter=max_iter, n_jobs=n_jobs, time_limit=time_limit, progress=progress
        )
        ready = isinstance(A, Hinges)
        self.hinges: Hinges = A if ready else _hinges(A, b, powers, kinds, groups, np.size(weights))
        self._result: HingeResult | None = None
        self.start: HingeResult | Floats | None = None  # warm start of the next inference
        self.weights_ = weights

    @classmethod
    def of(cls, hinges: Hinges, weights: Any = 1.0, **options: Any) -> HingeField:
        """Create a field from existing forms.

        Parameters
        ----------
        hinges
            The forms.
        weights : array-like of shape (groups,), or float
            Weights of the groups, at least 0.
        **options
            Parameters of inference: `tol`, `max_iter`, `n_jobs`, `time_limit`, `progress`.

        Returns
        -------
        HingeField
            The field.

        Examples
        --------
        >>> first = HingeField([[1.0], [-1.0]], [0.0, 1.0], powers=2, groups=[0, 1], weights=[1, 3])
        >>> HingeField.of(first.hinges, weights=[1, 1]).predict().round(4)
        array([0.5])
        """
        return cls(hinges, weights=weights, **options)

    # ---- best values ---------------------------------------------------------------------

    def predict(self) -> Floats:
        """Return the inferred values of all variables; computed once for the same weights.

        Returns
        -------
        array of shape (variables,)
            Values in [0, 1].

        Examples
        --------
        >>> HingeField([[1.0, 0.0], [-1.0, -1.0]], [-0.2, 1.5], powers=2).predict().round(2)
        array([0.35, 1.  ])
        """
        return self.result_.y.copy()

    def map(self, fixed: Any = None) -> HingeResult:
        """Infer the values of all variables, some of which may be given, and return the result.

        Parameters
        ----------
        fixed : dict, or array-like of shape (variables,), optional
            A mapping from variable to value, or an array with NaN for the others.

        Returns
        -------
        HingeResult
            The values `y` of shape (variables,), their `energy`, the lower bound `lower` on the
            optimal energy, the `gap` between the two, the largest `violation` of a hard form, and a
            `status`.

        Examples
        --------
        >>> field = HingeField([[1.0, -1.0], [0.0, 1.0]], [0.0, -0.5], powers=2)
        >>> field.map(fixed={0: 1.0}).y.round(2)
        array([1.  , 0.75])
        """
        if fixed is None:
            return self.result_
        return self._solve(fixed)

    @property
    def result_(self) -> HingeResult:
        """Result of inference, warm-started from the last one."""
        if self._result is None:
            self._result = self.start = self._solve(None)
            if not self._result.converged:
                warn(
                    f"inference ended before tol={self.tol:g} ({self._result.status}): use a "
                    f"larger max_iter or time_limit",
                    UncertifiedWarning,
                )
        return self._result

    def _solve(self, fixed: Any) -> HingeResult:
        return solve_map(
            self.hinges,
            self._weights,
            fixed=fixed,
            start=self.start if fixed is None else None,
            tol=self.tol,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            progress=self.progress,
            n_jobs=threads(self.n_jobs),
        )

    def energy(self, y: Any) -> float:
        """Return the energy of given values, whether or not they satisfy the hard constraints.

        Parameters
        ----------
        y : array-like of shape (variables,)
            Values in [0, 1].

        Returns
        -------
        float
            The energy.

        Examples
        --------
        >>> HingeField([[1.0], [-1.0]], [0.0, 1.0], powers=2).energy([0.5])
        0.5
        """
        values = checks.numbers("y", y)
        if values.shape != (self.hinges.n_variables,):
            raise ArgumentError(
                f"values of shape {values.shape} were given for {self.hinges.n_variables} "
                f"variables: give one for each"
            )
        return self.hinges.energy(values, self._weights)

    # ---- weights -------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """One weight for each group."""
        return self._weights.copy()

    @weights_.setter
    def weights_(self, weights: Any) -> None:
        given = checks.numbers("weights", weights)
        n = self.hinges.n_groups
        self._weights = self.hinges.check_weights(np.full(n, given) if given.ndim == 0 else given)
        self._result = None

    @documented
    def fit(
        self, truth: Any, *, learnt: Any = None, given: Any = None, **options: Any
    ) -> HingeField:
        """Learn the weights from true values.

        Parameters
        ----------
        truth : array-like of shape (variables,)
            (variables) In [0, 1]; NaN if a variable is latent.
        learnt : array-like of bool of shape (groups,), optional
            (groups) Boolean: the groups whose weights are learnt; by default all that have hinges.
        given : array-like of bool of shape (variables,), optional
            (variables) Boolean: the variables with a truth that are input, not to be predicted.
        {field_learning}

        Returns
        -------
        HingeField
            The field itself, with the weights that were learnt.

        Examples
        --------
        >>> field = HingeField([[1.0], [-1.0]], [0.0, 1.0], powers=2, groups=[0, 1], weights=[1, 1])
        >>> before = field.predict()
        >>> after = field.fit([0.9], max_iter=20, tol=None).predict()
        >>> bool(abs(after - 0.9) < abs(before - 0.9))
        True
        """
        from structlearn._src.estimators.fields.learning import FieldLearning  # not to predict

        learning = FieldLearning.of(options)
        self.weights_ = learning.run(
            self, self.hinges, self._weights, truth, learnt=learnt, given=given
        )
        return self

    def __repr__(self) -> str:
        hard = int(self.hinges.hard.sum())
        return (
            f"HingeField({self.hinges.n_forms - hard} hinges and {hard} hard constraints over "
            f"{self.hinges.n_variables} variables, {self.hinges.n_groups} weights)"
        )


# ---- from arrays to forms ------------------------------------------------------------------


def _hinges(A: Any, b: Any, powers: Any, kinds: Any, groups: Any, n_weights: int) -> Hinges:
    offsets, variables, coefficients, shape = _rows(A)
    n = shape[0]
    which = _each("groups", 0 if groups is None else groups, n, np.int32)
    if (which < 0).any():
        raise ArgumentError("groups must count from 0; one is negative")
    return Hinges(
        offsets,
        variables,
        coefficients,
        _each("b", b, n, np.float64),
        _each("kinds", _kinds(kinds), n, np.int8),
        _each("powers", powers, n, np.int8),
        which,
        shape[1],
        max(int(which.max(initial=-1)) + 1, n_weights),
    )


def _rows(A: Any) -> tuple[Ints, Ints, Floats, tuple[int, int]]:
    """Return the rows of a matrix, without zeros."""
    if hasattr(A, "tocsr"):
        matrix = A.tocsr(copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix.indptr, matrix.indices, matrix.data, matrix.shape
    try:
        dense = np.asarray(A, np.float64)
    except (TypeError, ValueError):
        raise GraphError("A is not an array of numbers: give one of (forms, variables)") from None
    if dense.ndim != 2:
        raise GraphError(f"A has shape {dense.shape}: it must be (forms, variables)")
    rows, variables = np.nonzero(dense)
    offsets = offsets_of(np.bincount(rows, minlength=len(dense)))
    return offsets, variables, dense[rows, variables], (dense.shape[0], dense.shape[1])


def _each(name: str, given: Any, n: int, dtype: Any) -> Any:
    """Return one number for each form."""
    array = as_array(given)
    if array.dtype.kind == "O":
        array = checks.numbers(name, given)
    if array.shape not in ((), (n,)) or array.dtype.kind not in "fiub":
        raise GraphError(
            f"{name} has shape {array.shape}, but A has {n} rows: give one number for each, or "
            f"one for all"
        )
    if not np.isfinite(array).all():
        raise GraphError(f"{name} must be finite numbers")
    typed = array.astype(dtype)
    if typed.dtype.kind != "f" and (typed != array).any():
        raise GraphError(f"{name} must be whole numbers")
    return np.broadcast_to(typed, (n,))


def _kinds(given: Any) -> Any:
    names = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    unknown = [name for name in names if not isinstance(name, str) or name not in KINDS]
    if unknown:
        raise ArgumentError(
            f"kinds has {unknown[0]!r}: choose one of {', '.join(map(repr, KINDS))} for each form"
        )
    codes = [KINDS[name] for name in names]
    return codes[0] if isinstance(given, str) else codes
