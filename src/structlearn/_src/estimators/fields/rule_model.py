"""Models of rules: soft logic over a user's tables, learnt and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, InfeasibleError
from structlearn._src.common.history import History
from structlearn._src.common.paths import PathLike
from structlearn._src.estimators.fields.certified import Certified
from structlearn._src.estimators.fields.frames import make_frame
from structlearn._src.estimators.fields.learning import Learning
from structlearn._src.estimators.fields.rule_program import RuleProgram
from structlearn._src.field.admm import HingeResult
from structlearn._src.metrics.ranking import METRICS
from structlearn._src.rules import rule_file
from structlearn._src.rules.explain import Pull, explain, read_atom
from structlearn._src.rules.words import SHOWN, constraint, some


class RuleModel(Certified, RuleProgram):
    r"""Weighted rules over atoms with values in [0, 1]: probabilistic soft logic.

    Every grounding of a rule is a hinge :math:`\max(l(y), 0)^p`, its distance to satisfaction in
    Lukasiewicz's logic, or a hard constraint. The best values of the targets minimise

    .. math:: E(y) = \sum_r w_r \sum_{i \in r} \max(l_i(y), 0)^{p_r} ,

    which is found with a certified gap.

    Parameters
    ----------
    rules : str, or sequence of str or Rule
        The program, in PSL's language: ``"20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2"``.
    tol : float, default=1e-6
        Gap at which inference stops, relative to the energy plus the mean weight.
    max_iter : int, default=5000
        Steps of ADMM in one inference.
    greedy : bool, default=False
        Read coefficients as PSL does: ``1 - 0.5 * P(A)`` as ``(1 - 0.5) * P(A)``.
    source : path, optional
        A file of DuckDB, whose tables can be given by name as data.
    n_jobs : int, optional
        Number of threads; all cores if None or -1. Results do not depend on it.
    memory : str, optional
        Limit for the tables of atoms, such as ``"2GB"``; they spill to disk above.
    time_limit : float, optional
        Seconds after which `predict` and `fit` end with the best so far.
    progress : callable, optional
        Called with the fraction done and a few words.

    Attributes
    ----------
    rules_
        The rules as text, with the weights of now.
    weights_
        (rules) Weights, infinite for hard rules. May be set: all of them by an array, or some by a
        mapping from the number of a rule or its text.
    grounding_
        The ground program: its `hinges`, and how many each rule has in `counts`.
    energy_, lower_bound_, gap_, violation_
        Of the best values: the energy, a proven bound below that of any values, their distance,
        and by how much a hard constraint is missed at most.
    result_
        All about the last inference.
    value_, history_, n_iter_, converged_, status_
        How learning went, after `fit`.

    Notes
    -----
    A target that no rule reaches has the value 0.5, with an `UnreachedAtomWarning`. A rule without
    groundings brings a `SilentRuleWarning`. Atoms of a predicate without targets are 0 where they
    are not listed; of a predicate with targets every atom that a rule reaches must be listed.

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

    References
    ----------
    S. Bach, M. Broecheler, B. Huang and L. Getoor, "Hinge-loss Markov random fields and
    probabilistic soft logic", JMLR 2017.
    """

    value_: float
    history_: History
    n_iter_: int
    converged_: bool
    status_: str

    # ---- best values -----------------------------------------------------------------------

    def predict(self, predicate: str | None = None, *, frame: str | None = None) -> Any:
        """Find the best values of the targets.

        Inference goes on from where the last one ended, and nothing is done twice.

        Parameters
        ----------
        predicate : str, optional
            Whose targets; not needed where only one has some.
        frame : {"pandas", "polars", "dict"}, optional
            What to return; the first of these that is installed if not given.

        Returns
        -------
        frame, or dict of frames by predicate
            A column for each argument, named as in the frame of targets, else ``argument1`` and
            so on, and the column ``value``. A dict of NumPy arrays by column if neither pandas
            nor polars is there. Where several predicates have targets and none is named, one
            frame for each of them.
        """
        values = self.result_.y
        relations = [each for each in self.tables.relations.values() if each.n_free]
        names = [each.name for each in relations]
        if predicate is not None:
            names = [self._open(predicate)]
        frames = {name: self._frame(name, values, frame) for name in names}
        return frames if len(frames) > 1 else frames[names[0]]

    def _frame(self, predicate: str, values: Floats, kind: str | None) -> Any:
        atoms, arguments = self.tables.arguments(predicate)
        columns = dict(zip(self._columns[predicate], arguments, strict=True))
        return make_frame(columns | {"value": values[atoms]}, kind)

    def _open(self, predicate: str) -> str:
        relation = self.tables.relation(predicate)
        if not relation.n_free:
            raise ArgumentError(
                f"{relation.name} has no targets, so there is nothing to find: name a predicate "
                f"that was given to target(...)"
            )
        return relation.name

    @property
    def result_(self) -> HingeResult:
        """All about the best values."""
        field = self._ground_field()
        try:
            self._last = field.result_
        except InfeasibleError as error:
            raise self._named(error) from None
        return self._last

    def explain(self, atom: str | Sequence[Any]) -> list[Pull]:
        """List the groundings that pull a target up or down, the strongest first.

        Parameters
        ----------
        atom : str or sequence
            Such as ``"Likes('bob', 'tea')"``, where quotes may be left out, or
            ``("Likes", "bob", "tea")``.
        """
        if isinstance(atom, str):
            predicate, arguments = read_atom(atom)
        elif isinstance(atom, Sequence) and len(atom) > 1:
            predicate, arguments = atom[0], list(atom[1:])
        else:
            raise ArgumentError(f"{atom!r} is not an atom; write it as in Likes('bob', 'tea')")
        number, result = self.tables.find(predicate, arguments), self.result_
        return explain(self.grounding_, number, result.y, forces=result.multipliers)

    def score(
        self,
        truth: Mapping[str, Any] | None = None,
        *,
        metric: str = "auroc",
        predicate: str | None = None,
    ) -> float:
        """Compare the best values with the truth, where it is known.

        Parameters
        ----------
        truth : mapping, optional
            As for `truth`, to which it is added.
        metric : {"auroc", "aupr", "aupr_negative", "mse", "accuracy", "f1"}
            A truth of at least 0.5 is positive, and for the last two a value of at least 0.5 too.
        predicate : str, optional
            Whose atoms; all if not given.
        """
        compare = METRICS[checks.one_of("metric", metric, tuple(METRICS))]
        labels = self._labels(truth)
        if predicate is not None:
            others = np.ones(len(labels), bool)
            others[self.tables.arguments(self._open(predicate))[0]] = False
            labels[others] = np.nan
        known = ~np.isnan(labels)
        if not known.any():
            raise ArgumentError("no target has a truth to compare with: give some by truth(...)")
        return compare(labels[known], self.result_.y[known])

    def _labels(self, truth: Mapping[str, Any] | None) -> Floats:
        self._need_targets()
        self.truth(truth)
        return self.tables.labels()

    # ---- learning --------------------------------------------------------------------------

    def fit(
        self,
        truth: Mapping[str, Any] | None = None,
        *,
        latent: Iterable[str] = (),
        learner: str = "paired",
        **options: Any,
    ) -> Self:
        """Learn the weights of the rules from true values of targets.

        Targets without a truth are latent: nobody says what they are, and learning finds values
        that explain the others.

        Parameters
        ----------
        truth : mapping, optional
            As for `truth`, to which it is added.
        latent : iterable of str
            Predicates that are latent on purpose; it is an error if one of them has a truth.
        learner : {"paired", "em", "subgradient"}
            Paired-dual learning, expectation maximisation, or subgradients.
        **options
            See `Learning`: `surrogate`, `strength`, `C`,
            `max_iter`, `tol`, `steps`, `warm_up`, `rule`, `step_size`, `average`, `callbacks`.
        """
        learning = Learning.of({"learner": learner, **options})
        names = [latent] if isinstance(latent, str) else list(latent)
        labels = self._labels(truth)
        for name in names:
            self._refuse_truth(self._open(name), labels)
        if np.isnan(labels).all():
            raise ArgumentError("no target has a truth to learn from: give some by truth(...)")
        field = self._ground_field()
        try:
            field.fit(labels, **vars(learning))
        except InfeasibleError as error:
            raise self._named(error) from None
        self._take(field.weights_)
        for name in ("value_", "history_", "n_iter_", "converged_", "status_"):
            setattr(self, name, getattr(field, name))
        return self

    def _refuse_truth(self, predicate: str, labels: Floats) -> None:
        atoms = self.tables.arguments(predicate)[0]
        known = atoms[~np.isnan(labels[atoms])]
        if len(known):
            raise ArgumentError(
                f"{predicate} is latent, but {self.tables.names(known[:1])[0]} has a truth: leave "
                f"it out of latent, or its truth out of the data"
            )

    # ---- files and words -------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Write rules, weights and parameters to a file of JSON; atoms stay where they are."""
        kept = {"tol": self.tol, "max_iter": self.max_iter}
        learnt = ("value_", "n_iter_", "converged_", "status_")
        facts = {name: vars(self)[name] for name in learnt if name in vars(self)}
        rule_file.save(path, self.rules_, kept, facts)

    @classmethod
    def load(cls, path: PathLike, **parameters: Any) -> Self:
        """Read what `save` has written; `parameters` take the place of those in the file."""
        rules, kept, facts = rule_file.load(path)
        with rule_file.damaged(path):
            model = cls(rules, **(kept | parameters))
        vars(model).update(facts)
        return model

    def __repr__(self) -> str:
        atoms = 0 if self._tables is None else self._tables.n_free
        return f"RuleModel({len(self._program)} rules, {atoms} targets)"

    def _named(self, error: InfeasibleError) -> InfeasibleError:
        """The same error about rules and atoms instead of numbers."""
        texts = [constraint(self.grounding_, form) for form in error.forms[:SHOWN]]
        return InfeasibleError(
            f"the hard rules cannot all hold: {some(texts, len(error.forms), '; ')}; give one of "
            f"them a weight, or mend the data",
            error.forms,
        )
