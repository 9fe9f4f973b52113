"""The current place: threads, blocks, the environment, and functions that places take over."""

from __future__ import annotations

import threading

import pytest

from structlearn import on
from structlearn._src.common import place, threads
from structlearn._src.common.place import Place, at, current, placed
from structlearn.errors import PlaceError


class Doubling(Place):
    name = "doubling"

    def halve(self, function, x):
        return 2 * function(x)


@placed
def halve(x):
    """Return half of it."""
    return x / 2


def test_work_runs_in_threads_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv(place.VARIABLE, raising=False)
    assert current().name == "threads"
    monkeypatch.setenv(place.VARIABLE, "threads")
    assert current().name == "threads"
    thing = object()
    assert current().objective(thing) is thing


def test_blocks_nest_and_end():
    outer, inner = Doubling(), Place()
    with on(outer):
        assert current() is outer
        with on(inner):
            assert current() is inner
        assert current() is outer
    assert current().name == "threads"
    with pytest.raises(KeyError), on(outer):
        raise KeyError
    assert current().name == "threads"


def test_a_place_takes_over_functions_of_the_same_name():
    assert halve.__doc__ == "Return half of it."
    assert halve(3) == 1.5
    with at(Doubling()):
        assert halve(3) == 3.0
        with at(Place()):
            assert halve(x=3) == 1.5


def test_threads_of_the_library_work_where_their_caller_does():
    seen = {}
    barrier = threading.Barrier(2)

    def note(first, last):
        barrier.wait()  # two threads at once, neither of which is this one
        seen[first] = current().name, threading.get_ident()

    with at(Doubling()):
        threads.run(note, [(0, 1), (1, 2)], n_jobs=2)
        threads.run(note, [(2, 3), (3, 4)], n_jobs=2)
    assert {name for name, _ in seen.values()} == {"doubling"}
    threads.run(note, [(0, 1), (1, 2)], n_jobs=2)
    assert {seen[0][0], seen[1][0]} == {"threads"}


def test_other_threads_are_left_alone():
    seen = []
    with at(Doubling()):
        other = threading.Thread(target=lambda: seen.append(current().name))
        other.start()
        other.join()
    assert seen == ["threads"]


def test_the_environment_names_a_place_once(monkeypatch):
    found = []

    def find(name):
        found.append(name)
        return Doubling()

    monkeypatch.setattr(place, "_find", find)
    monkeypatch.setattr(place, "_named", {})
    monkeypatch.setenv(place.VARIABLE, "doubling")
    assert current().name == "doubling"
    assert current() is current()
    assert found == ["doubling"]
    with on("threads"):
        assert current().name == "threads"


def test_an_environment_that_changed_too_late_is_refused(monkeypatch):
    monkeypatch.setattr(place, "_find", None)
    monkeypatch.setenv(place.VARIABLE, "cuda")
    with pytest.raises(PlaceError, match="STRUCTLEARN_PLACE='cuda'"):
        current()
