"""What `HingeField` and `RuleModel` have after inference and learning."""

from __future__ import annotations

from structlearn._src.common.history import History
from structlearn._src.common.watch import Ending
from structlearn._src.field.admm import HingeResult


class FieldEstimator:
    """Fitted attributes of everything that is a hinge-loss field inside."""

    value_: float
    history_: History
    n_iter_: int
    converged_: bool
    status_: str
    ended_: Ending

    @property
    def result_(self) -> HingeResult:
        """All about the best values."""
        raise NotImplementedError

    @property
    def energy_(self) -> float:
        """Energy of the best values, with the weights as they are given."""
        return self.result_.energy

    @property
    def lower_bound_(self) -> float:
        """No values that keep the hard constraints have less energy."""
        return self.result_.lower

    @property
    def gap_(self) -> float:
        """Certified distance of the energy from the optimum."""
        return self.result_.gap

    @property
    def violation_(self) -> float:
        """By how much a hard constraint is missed at most."""
        return self.result_.violation
