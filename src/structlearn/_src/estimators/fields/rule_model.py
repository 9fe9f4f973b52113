"""Models of rules: soft logic over a user's tables, learnt and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.frames import make_frame
from structlearn._src.common.html import rows_table
from structlearn._src.common.paths import PathLike
from structlearn._src.estimators.base import Estimator, threads
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.fields.hinge_field import FieldEstimator, HingeField
from structlearn._src.estimators.fields.rule_model_doc import RULE_MODEL
from structlearn._src.estimators.fields.storage import load_rules, save_rules
from structlearn._src.field.admm import HingeResult
from structlearn._src.metrics.ranking import BLOCKWISE, METRICS
from structlearn._src.rules.explain import Pull, explain, find_atom
from structlearn._src.rules.ground import Grounding
from structlearn._src.rules.ground_program import (
    GroundProgram,
    RuleSize,
    find_rules,
    read_weighted_rules,
    split_rules,
    weights_of,
    with_weights,
)
from structlearn._src.rules.program import ProgramFile, read_program
from structlearn._src.rules.syntax import Rule
from structlearn._src.rules.tables import Tables


@completed(RULE_MODEL)
@documented
@dataclass(eq=False, repr=False)
class RuleModel(FieldEstimator, Estimator):
    r"""Weighted rules over atoms with values in [0, 1]: probabilistic soft logic.

    Every grounding of a rule is a hinge :math:`\max(l(y), 0)^p`, its distance to satisfaction in
    Lukasiewicz logic, or a hard constraint. The inferred values of the targets minimise

    .. math:: E(y) = \sum_r w_r \sum_{i \in r} \max(l_i(y), 0)^{p_r} ,

    with a certified gap; see `HingeField` for references.

    Parameters
    ----------
    rules
        The program, in PSL's language: ``"20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2"``, as a
        string, or a list of strings and parsed rules.
    greedy
        Parse coefficients as PSL does: ``1 - 0.5 * P(A)`` as ``(1 - 0.5) * P(A)``.
    source
        A DuckDB file, whose tables can be given by name as data.
    memory_limit
        Limit on the resident memory of the program, for example ``"2GB"``. Tables of atoms spill to
        disk, and groundings that take too much of it are left in files without a name, in the
        folder for temporary files; inference and learning then go through them on one thread. The
        limit must be about 300 MB and 530 bytes for each target at least.
    {inference}

    Attributes
    ----------
    rules_
        The rules as text, with their current weights.
    weights_
        (rules) Weights, infinite for hard rules. Can be set: all of them by an array, or some by a
        mapping from the number of a rule or its text.
    grounding_
        The ground program: its `hinges`, and the number of hinges of each rule in `counts`.
    {found}

    Notes
    -----
    A target that occurs in no grounding has the value 0.5, with an `UnreachedAtomWarning`. A rule
    without groundings causes a `SilentRuleWarning`. For a predicate without targets, atoms that are
    not listed are 0; for a predicate with targets, every atom in a grounding must be listed.

    Examples
    --------
    >>> from structlearn import RuleModel
    >>> model = RuleModel('''
    ...     20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2
    ...     5: !Likes(A, X) ^2
    ... ''')
    >>> model = model.observe(Knows=[("ann", "bob"), ("bob", "cyd")], Likes=[("ann", "tea", 0.9)])
    >>> model = model.target(Likes=[("bob", "tea"), ("cyd", "tea")])
    >>> model.predict("Likes", frame="dict")["value"].round(3)
    array([0.621, 0.497])
    >>> round(model.explain("Likes('bob', 'tea')")[0].slope, 2)  # pulls up
    -11.17
    """

    rules: str | Sequence[str | Rule]
    _: KW_ONLY
    greedy: bool = False
    source: str | Path | None = None
    memory_limit: str | None = None

    def __post_init__(self) -> None:
        self._known: GroundProgram | None = None
        self._field: HingeField | None = None
        self._start: HingeResult | Floats | None = None  # warm start of the next inference
        self._read_rules()

    def _read_rules(self) -> None:
        self._rules = read_weighted_rules(self.rules, greedy=self.greedy)
        self.clear()

    @classmethod
    def from_file(
        cls,
        model: str | Path,
        data: str | Path | Mapping[str, str | Path] | None = None,
        *,
        split: str = "infer",
        greedy: bool = False,
        **parameters: Any,
    ) -> Self:
        """Read rules and atoms from PSL files."""
        program = read_program(model, data, greedy=greedy)
        return cls(program.rules_for(split), greedy=greedy, **parameters).read(program, split)

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; new rules start without atoms."""
        super().set_params(**parameters)
        self._field = None
        if parameters.keys() & {"rules", "greedy", "source", "memory_limit"}:
            self._read_rules()
        return self

    # ---- atoms -----------------------------------------------------------------------------

    def observe(
        self, data: Mapping[str, Any] | None = None, /, *, header: bool = False, **atoms: Any
    ) -> Self:
        """Add atoms with known values: columns of arguments, and perhaps values (1 if absent)."""
        return self._add("observe", data, atoms, header)

    def target(
        self, data: Mapping[str, Any] | None = None, /, *, header: bool = False, **atoms: Any
    ) -> Self:
        """Add atoms whose values are to be inferred; data as in `observe`, without values."""
        return self._add("target", data, atoms, header)

    def truth(
        self, data: Mapping[str, Any] | None = None, /, *, header: bool = False, **atoms: Any
    ) -> Self:
        """Add true values of targets, for `fit` and `score`; data as in `observe`."""
        return self._add("truth", data, atoms, header)

    def _add(
        self, how: str, data: Mapping[str, Any] | None, more: Mapping[str, Any], header: bool
    ) -> Self:
        if how != "truth":
            self._forget_field()
        self._ground.add(how, data, more, header)
        return self

    def _forget_field(self) -> None:
        self._field = None
        if isinstance(self._start, HingeResult):
            self._start = self._start.y  # multipliers are of forms that may be others now

    def read(self, program: ProgramFile, split: str = "infer") -> Self:
        """Replace the atoms by those of a split of a program that was read from files."""
        self.clear()
        self._ground.read(program, split)
        return self

    def clear(self) -> Self:
        """Remove all atoms and keep the weights."""
        self._known = self._field = self._start = None
        return self

    @property
    def _ground(self) -> GroundProgram:
        """The rules over the atoms so far."""
        if self._known is None:
            self._known = GroundProgram(
                self._rules,
                source=self.source,
                n_jobs=threads(self.n_jobs),
                memory_limit=self.memory_limit,
            )
        return self._known

    @property
    def tables(self) -> Tables:
        """The atoms, in DuckDB."""
        return self._ground.tables

    def estimate(self, *, broken: bool = False) -> list[RuleSize]:
        """Count the groundings of every rule without creating them."""
        return self._ground.sizes(count_broken=broken)

    @property
    def grounding_(self) -> Grounding:
        """The ground program, created once for the same atoms."""
        return self._ground.grounding

    # ---- weights ---------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """(rules) Weights, infinite for hard rules."""
        return weights_of(self._rules)

    @weights_.setter
    def weights_(self, weights: Any) -> None:
        self._rules = with_weights(self._rules, weights, greedy=self.greedy)
        if self._known is not None:
            self._known.reweigh(self._rules)
        if self._field is not None:
            self._field.weights_ = self.grounding_.weights

    @property
    def rules_(self) -> list[str]:
        """The rules as text, with their current weights."""
        return list(map(str, self._rules))

    def split(self, rule: int | str, by: str) -> Self:
        """Replace a rule by one copy for each constant of a variable, each with a weight.

        The constants are those that occur there in the atoms so far, and each copy starts with the
        weight of the rule; `fit` then learns one for each, and `rules_`, `weights_` and files
        contain them all.
        """
        self._rules = split_rules(self._rules, rule, by, self.tables, greedy=self.greedy)
        self._ground.replace_rules(self._rules)
        self.rules = self.rules_
        self._forget_field()
        return self

    # ---- best values -----------------------------------------------------------------------

    def predict(self, predicate: str | None = None, *, frame: str | None = None) -> Any:
        """Infer the values of the targets.

        Inference is warm-started from the last result, and nothing is computed twice.
        """
        values = self.result_.y
        frames = {}
        for name in self._ground.predicates_with_targets(predicate):
            atoms, columns = self._ground.targets(name)
            frames[name] = make_frame(columns | {"value": values[atoms]}, frame)
        return frames if len(frames) > 1 else next(iter(frames.values()))

    @property
    def result_(self) -> HingeResult:
        """Result of inference, with its certificate."""
        with self._ground.contradictions_named():
            self._start = self._hinge_field().result_
        return self._start

    def _hinge_field(self) -> HingeField:
        """The field of all groundings; made once for the same atoms and parameters."""
        if self._field is None:
            shared = {each.name: getattr(self, each.name) for each in fields(FieldEstimator)}
            hinges = self.grounding_.hinges
            self._field = HingeField(hinges, weights=self.grounding_.weights, **shared)
            start = self._start
            if start is not None and not isinstance(start, HingeResult):
                start = np.append(start, np.full(hinges.n_variables - len(start), 0.5))
            self._field.start = start
        return self._field

    def explain(self, atom: str | Sequence[Any]) -> list[Pull]:
        """List the groundings that pull a target up or down, strongest first."""
        number = find_atom(self.tables, atom)
        result = self.result_
        return explain(self.grounding_, number, result.y, result.multipliers)

    def score(
        self,
        truth: Mapping[str, Any] | None = None,
        *,
        metric: str = "auroc",
        predicate: str | None = None,
        threshold: float | None = None,
        category: int | Sequence[int] | None = None,
    ) -> float:
        """Compare the inferred values with the truth, where it is known."""
        compare = METRICS[checks.one_of("metric", metric, tuple(METRICS))]
        options: dict[str, Any] = {} if threshold is None else {"threshold": threshold}
        if (metric in ("mse", "rmse", "mae") and options) or (metric not in BLOCKWISE and category):
            raise ArgumentError(f"threshold or category has no meaning for metric={metric!r}")
        self._ground.need_targets()
        labels = self.truth(truth)._ground.labels(predicate)
        known = np.flatnonzero(~np.isnan(labels))
        if not len(known):
            raise ArgumentError("no target has a truth to compare with: give some by truth(...)")
        if metric in BLOCKWISE:
            known, options["blocks"] = self._ground.blocks(predicate, category)
        return compare(labels[known], self.result_.y[known], **options)

    # ---- learning --------------------------------------------------------------------------

    @documented
    def fit(
        self,
        truth: Mapping[str, Any] | None = None,
        *,
        latent: Iterable[str] = (),
        fixed: Iterable[int | str] = (),
        **options: Any,
    ) -> Self:
        """Learn the weights of the rules from true values of targets.

        Targets without a truth are latent: learning infers values that explain the others.

        Parameters
        ----------
        truth
            As for `truth`, to which it is added.
        latent
            Predicates that are intentionally latent; it is an error if one of them has a truth.
        fixed
            Rules that keep their weights, by number or text.
        {field_learning}

        Returns
        -------
        Self
            The model, with the weights that were learnt.

        Examples
        --------
        >>> from structlearn import RuleModel
        >>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
        >>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
        >>> model = model.target(Smokes=[("bob",)])
        >>> model = model.fit({"Smokes": [("bob", 1.0)]}, max_iter=20, tol=None)
        >>> bool(model.weights_[0] > model.weights_[1])
        True
        """
        from structlearn._src.estimators.fields.learning import FieldLearning  # not to predict

        learning = FieldLearning.of(options)
        self._ground.need_targets()
        labels = self.truth(truth)._ground.labels()
        for name in [latent] if isinstance(latent, str) else latent:
            self._ground.refuse_truth(name)
        learnt = np.ones(len(self._rules), np.bool_)
        for key in [fixed] if isinstance(fixed, str | int) else fixed:
            learnt[find_rules(self._rules, key, greedy=self.greedy)] = False
        if np.isnan(labels).all():
            raise ArgumentError("no target has a truth to learn from: give some by truth(...)")
        with self._ground.contradictions_named():
            grounding = self.grounding_
            weights = learning.run(self, grounding.hinges, grounding.weights, labels, learnt=learnt)
        self.weights_ = np.where(np.isinf(self.weights_), np.inf, weights)
        return self

    # ---- files and words -------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Write rules, weights and parameters, but no atoms, to a JSON file."""
        save_rules(path, self)

    @classmethod
    def load(cls, path: PathLike, **parameters: Any) -> Self:
        """Load a model that was written by `save`."""
        return load_rules(path, cls, parameters)

    def __repr__(self) -> str:
        atoms = 0 if self._known is None else self._known.tables.n_free
        return f"RuleModel({len(self._rules)} rules, {atoms} targets)"

    def _repr_html_(self) -> str:
        return rows_table(repr(self), ("rule",), [(rule,) for rule in self.rules_])
