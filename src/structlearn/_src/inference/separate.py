"""Messages in one graph after the other, each from the first sweep to the last.

Threads take graphs, and all of the work on one is done while their caches hold it. Sweeps over all
graphs together read everything from memory again each time, which 16 threads do little faster than
four.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.reuse import empty
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem
from structlearn._src.inference.message_plan import MessagePlan
from structlearn._src.kernels.graph import many
from structlearn._src.kernels.graph.many import Exchange, nothing_fixed
from structlearn._src.kernels.graph.message import MessageState
from structlearn._src.kernels.team import make_board


def separable(plan: MessagePlan) -> bool:
    """Whether there is nothing between sweeps that only Python can do."""
    return plan.warm and not len(plan.shared)


def in_place(wiring: Wiring) -> Exchange:
    """Return what says that nothing is copied: kernels read potentials where they are.

    Beliefs of factors are not wanted.
    """
    nothing = np.empty(0)
    return Exchange(
        wiring.graph_factors, wiring.table_offsets, wiring.table_offsets[:0], nothing, nothing,
        nothing, nothing, nothing, False, np.empty((0, 0)), nothing_fixed(),
    )  # fmt: skip


def solve_graphs(
    plan: MessagePlan,
    problem: Problem,
    tasks: Ints,
    x: Exchange,
    tables: Floats,
    messages: tuple[Floats, Floats],
    how: tuple[float, float, int],
    read: tuple[Floats, Floats],
    progress: tuple[Floats, Ints, Bools],
    n_jobs: int | None,
) -> None:
    """Solve the graphs of some tasks in one call of a kernel, and read values and beliefs.

    Parameters
    ----------
    plan, problem
        The graphs, which are `separable`, and their temperatures.
    tasks
        One of `MessagePlan.runs`.
    x
        Where potentials come from, and beliefs of factors go.
    tables
        Workspace, as long as the potentials; or these themselves, where `x` has no places.
    messages
        Those to begin with, and those in the end: two arrays, or one.
    how
        Damping, tolerance, and sweeps.
    read
        Values of the graphs, and beliefs of the variables.
    progress
        The largest change of each graph in its last sweep, its sweeps so far, and whether it is
        done.
    n_jobs
        Number of threads.
    """
    start, end = messages
    damping, tol, sweeps = how
    value, marginals = read
    helpers = threads.helpers(n_jobs, len(tasks) - 1)
    with plan.exponentials.lend() as exponentials, plan.workspaces.lend(helpers) as workspaces:
        warm = MessageState(
            exponentials, plan.weights, plan.ratios, end, empty(len(end) if plan.raises else 0),
            empty(0), empty(len(marginals)), True, damping,
        )  # fmt: skip
        plain = warm._replace(tables=tables, raised=empty(0), linear=False)
        threads.launch(
            many.message_in_threads, helpers, make_board(1), tasks, x, problem.wiring.graph_tables,
            plan.borders, plan.net, plan.order, warm, plain, plan.span, start, problem.eps, tol,
            sweeps, marginals, workspaces, value, *progress,
        )  # fmt: skip
