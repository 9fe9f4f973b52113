"""Solvers for the parameter `solver` of estimators, and what is needed to write one."""

from structlearn._src.common.history import History
from structlearn._src.learn.objective import Ability
from structlearn._src.solve.base import Report, Solver
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.drivers import Annealed, Cccp, Paired
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import Event, run
from structlearn._src.solve.online import Online
from structlearn._src.solve.sdca import Sdca
from structlearn._src.solve.stochastic import Stochastic

__all__ = [
    "Ability", "Annealed", "Cccp", "Descent", "Event", "FrankWolfe", "History", "Lbfgs",
    "Online", "Owlqn", "Paired", "Report", "Sdca", "Solver", "Stochastic", "run",
]  # fmt: skip
