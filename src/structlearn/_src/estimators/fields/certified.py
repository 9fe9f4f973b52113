"""What everything that finds best values of a hinge-loss field tells about them."""

from __future__ import annotations

from structlearn._src.field.admm import HingeResult


class Certified:
    """Short names for the parts of `result_`."""

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
