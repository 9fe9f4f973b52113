"""The loop: stopping, history, callbacks, interrupts, time limits, what is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.history import History
from structlearn._src.common.watch import Watch
from structlearn._src.solve.base import Report, Solver
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import Stochastic
from structlearn._src.solve.stopping import small_reason, standstill_reason
from toys import Kinks, Logistic, Quadratic


@dataclass
class Script(Solver):
    """A solver that reports what it is told; weights count its steps."""

    reports: list
    name = "script"
    proves = True
    first: float | None = None
    average: bool = False

    def start(self, objective, weights, rng):
        return {"weights": weights, "i": 0} | ({} if self.first is None else {"value": self.first})

    def step(self, objective, state):
        report = self.reports[state["i"]]
        state["i"] += 1
        state["weights"][:] = state["i"]  # in place, as compiled solvers may
        if self.average:
            state["average"] = state["weights"] / 2
        if isinstance(report, BaseException):
            raise report
        return report


def play(reports, first=None, average=False, **options):
    toy = Quadratic()
    options = {"max_iter": len(reports), "tol": None} | options
    return run(Script(reports, first, average), toy, np.zeros(toy.n_weights), **options)


def values(*numbers, **more):
    return [Report(number, **more) for number in numbers]


# ---- which weights count -----------------------------------------------------------------


def test_the_best_weights_are_kept():
    fit = play(values(5.0, 3.0, 4.0))
    assert (fit.weights == 2).all()
    assert fit.value == 3.0
    assert fit.n_iter == 3


def test_the_start_may_be_the_best():
    fit = play(values(5.0, 3.0, 4.0), first=1.0)
    assert (fit.weights == 0).all()
    assert fit.history.iteration.tolist() == [0, 1, 2, 3]
    assert fit.history.value.tolist() == [1.0, 5.0, 3.0, 4.0]


@pytest.mark.parametrize("reports", [values(math.nan, math.nan), values(1.0, 2.0, exact=False)])
def test_without_values_the_last_weights_count(reports):
    fit = play(reports, first=0.0)
    assert (fit.weights == 2).all()
    assert fit.value == Quadratic().value(fit.weights)  # found at the end


def test_the_average_is_the_answer():
    fit = play(values(math.nan, math.nan, math.nan), average=True)
    assert (fit.weights == 1.5).all()
    assert (play(values(3.0, 2.0, 4.0), average=True).weights == 1.0).all()


def test_weights_given_are_not_changed():
    toy = Logistic()
    weights = np.full(toy.n_weights, 0.5)
    run(Lbfgs(), toy, weights)
    run(Stochastic(batch_size=4), toy, weights, max_iter=3)
    play(values(1.0))
    assert (weights == 0.5).all()


# ---- stopping ----------------------------------------------------------------------------


def test_limit():
    fit = play(values(3.0, 2.0, 1.0), max_iter=2)
    assert (fit.n_iter, fit.converged, fit.ended) == (2, False, "limit")
    assert "max_iter=2" in fit.status


def test_done():
    fit = play([Report(3.0), Report(2.0, done=True, words="there"), Report(1.0)])
    assert (fit.n_iter, fit.converged, fit.status) == (2, True, "there")
    fit = play([Report(3.0, done=True, words="lost", stuck=True)])
    assert (fit.converged, fit.status) == (False, "lost")


def test_decrease():
    # 3 iterations gained 0.03; as many again as the 5 so far would gain 0.05.
    steps = 8.0, 4.0, 3.99, 3.98, 3.97, 3.0, 1.0
    fit = play(values(*steps), tol=0.06 / 3.97, patience=3)
    assert fit.n_iter == 5
    assert fit.converged
    assert "as many iterations again" in fit.status
    assert play(values(*steps), tol=0.04 / 3.97, patience=3).n_iter == 7
    # A rise does not count as an end, only that the best got no better.
    fit = play(values(8.0, 4.0, 9.0, 9.0, 2.0, 1.9, 1.8), tol=0.1, patience=3)
    assert fit.n_iter == 7
    fit = play(values(1.0, math.nan, math.nan, math.nan), tol=0.1, patience=1)
    assert fit.n_iter == 4


def test_steps_worse_than_the_start_get_their_time():
    later = [90.0, 90.0, 90.0, 90.0, 50.0, 10.05, 10.05, 10.05, 10.05]
    fit = play(values(*later), first=10.0, tol=0.1, patience=2)
    assert fit.n_iter == 8
    assert fit.converged
    assert (fit.weights == 0).all()


def test_gap_and_slope_are_relative():
    assert play([Report(100.0, gap=0.9)], tol=0.01).converged
    assert not play([Report(100.0, gap=1.1)], tol=0.01).converged
    assert play([Report(100.0, gradient=0.3)], tol=0.01).converged  # weights have norm sqrt(8)
    assert not play([Report(100.0, gradient=0.4)], tol=0.01).converged
    assert play([Report(gap=0.009)], tol=0.01).converged  # absolute where no value is known
    assert small_reason(Report(), 1.0, 1.0) == ""
    assert standstill_reason(Report(), History(), 1.0, 1, 1.0) == ""


def test_no_tolerance_no_stop():
    assert play(values(1.0, 1.0, 1.0, 1.0), patience=1).n_iter == 4
    assert play([Report(1.0, gradient=0.0, gap=0.0)] * 3).n_iter == 3


def test_divergence_keeps_the_last_good_weights():
    toy = Quadratic()

    class Wild(Script):
        def step(self, objective, state):
            report = super().step(objective, state)
            if state["i"] == 3:
                state["weights"][2] = np.nan
            return report

    for value in (1.0, math.nan):
        fit = run(Wild(values(*[value] * 9)), toy, np.zeros(8), max_iter=9, tol=None)
        assert fit.n_iter == 3
        assert fit.status.startswith("diverged")
        assert not fit.converged
        assert (fit.weights == 2).all()


# ---- callbacks, progress, time, interrupts -----------------------------------------------


def test_callbacks():
    events = []

    def stop(event):
        return event.iteration == 3

    fit = play(values(5.0, 4.0, 3.0, 2.0), callbacks=[stop, events.append])
    assert fit.n_iter == len(events) == 3
    assert (fit.converged, fit.status) == (False, "stopped by a callback")
    assert [event.value for event in events] == [5.0, 4.0, 3.0]
    assert events[0].history is fit.history
    assert events[0][5] is fit.history  # where it was before there were inference_steps
    assert len(fit.history) == 3
    with pytest.raises(ValueError, match="read-only"):
        events[0].weights[0] = 1.0


def test_events_know_the_gradient_by_its_earlier_name():
    events = []
    play([Report(1.0, gradient=0.25)], callbacks=[events.append])
    assert (events[0].gradient, events[0].slope) == (0.25, 0.25)


def test_only_true_stops():
    assert play(values(5.0, 4.0), callbacks=[lambda e: e.weights.sum()]).n_iter == 2


def test_progress():
    told = []
    play(values(5.0, math.nan), watch=Watch(progress=lambda *what: told.append(what)))
    # What is known stays, be it told by the last step or by one before.
    assert told == [
        (0.5, "iteration 1, objective 5.00000"),
        (1.0, "iteration 2, objective 5.00000"),
    ]


@pytest.mark.parametrize("report", [Report(9.0), Report()])
def test_interrupt_in_a_step_keeps_the_best(report):
    watch = Watch()
    fit = play([Report(2.0), report, KeyboardInterrupt()], max_iter=9, watch=watch)
    assert (fit.weights == (1 if report.value == 9.0 else 2)).all()
    assert (fit.ended, fit.converged, fit.n_iter) == ("interrupted", False, 2)
    assert fit.status.startswith("interrupted after 2 iterations")
    assert fit.value == 2.0 or math.isnan(fit.value)
    assert watch.expired  # so that work around it ends too


def test_interrupt_in_a_callback_or_at_the_start():
    def interrupt(event):
        raise KeyboardInterrupt

    assert (play(values(2.0, 1.0), callbacks=[interrupt]).weights == 1).all()

    class Rude(Script):
        def start(self, objective, weights, rng):
            weights[:] = 7
            raise KeyboardInterrupt

    fit = run(Rude([]), Quadratic(), np.ones(8))
    assert (fit.weights == 1).all()
    assert fit.n_iter == 0
    assert math.isnan(fit.value)


def test_time_limit():
    fit = play(values(5.0, 4.0, 3.0), watch=Watch(time_limit=0.0))
    assert (fit.n_iter, fit.ended, fit.converged) == (1, "time", False)
    assert fit.status.startswith("time limit reached after 1 iterations")


# ---- front door --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"patience": 0}, "patience"),
    ],
)
def test_bad_options(bad, words):
    with pytest.raises(ArgumentError, match=words):
        play(values(1.0), **bad)


def test_bad_weights():
    toy = Quadratic()
    with pytest.raises(ArgumentError, match=r"shape \(3,\) .* 8 weights"):
        run(Lbfgs(), toy, np.zeros(3))
    with pytest.raises(ArgumentError, match="finite"):
        run(Lbfgs(), toy, np.full(8, np.nan))
    assert toy.calls == 0


def test_history_columns():
    history = run(Lbfgs(), Kinks(), np.zeros(3), max_iter=4, tol=None).history
    assert history.iteration.tolist() == [0, 1, 2, 3, 4]
    assert (np.diff(history.seconds) >= 0.0).all()
    assert np.isnan(history.gap).all()
    assert np.isnan(history.gradient[0])
    assert np.isfinite(history.gradient[1:]).all()
    again = History(history.table)
    np.testing.assert_array_equal(again.table, history.table)
    assert again.best(1) == history.best(1) == history.value[1:-1].min()
    assert again.start == history.start == history.value[0]
    assert math.isnan(History().best())
    assert math.isnan(History().start)
