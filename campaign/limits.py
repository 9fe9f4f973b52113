"""Full disks, closed folders, little memory, interrupts, two at once: nothing is lost or halved."""

from __future__ import annotations

import os
import pathlib
import resource
import signal
import threading
import warnings
from typing import Any

import numpy as np

from campaign.base import at_most_memory, expect
from campaign.children import Child, Ended
from campaign.kills import data
from campaign.models import answers, estimators, models, same
from campaign.parsers import folder
from structlearn import Checkpoint, SequenceLabeler, chain, infer, load, read_uai, save
from structlearn._src.text.columns import parse_columns

NOBODY = 65534


def _listing(place: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


def _said_why(ended: Ended, *errors: str) -> None:
    """A child that failed says why by an error that users can name."""
    expect(not ended.signal, f"ended by a signal: {ended}")
    if ended.code:
        last = ended.error.strip().splitlines()[-1]
        known = last.startswith(("structlearn.", *errors))
        expect(known, "not a named error:", ended.error)


# ---- full disks and closed folders ---------------------------------------------------------------


def check_full_disk(rng: np.random.Generator) -> None:
    """A save that does not fit leaves the old file as it was, and nothing beside it."""
    saved = models()[int(rng.integers(len(models())))]
    limit = int(rng.integers(0, len(saved.data)))
    with folder() as place:
        home = place / "home"
        home.mkdir()
        path = home / "model"
        path.write_bytes(saved.data)
        model = load(path)
        if rng.random() < 0.5:
            path.unlink()
        before = _listing(home)

        def write() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            save(model, path)

        ended = Child(write).ended()
        expect(ended.code != 0, "a full disk was not noticed")
        expect(not ended.error or "OSError" in ended.error or "structlearn." in ended.error, ended)
        expect(_listing(home) == before, f"the folder has {sorted(_listing(home))} after {ended}")


def check_full_disk_in_training(rng: np.random.Generator) -> None:
    """Training goes on where its checkpoints do not fit, and ends as it would have."""
    with folder() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"max_iter": 8, "n_jobs": 1, "random_state": 0}
        calm = SequenceLabeler(**options).fit(*data())
        limit = int(rng.integers(0, 5000))

        def train() -> None:
            checkpoint = Checkpoint(place / "run", iterations=1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            labeler = SequenceLabeler(**options, checkpoint=checkpoint).fit(*data())
            expect(np.array_equal(labeler.weights_, calm.weights_), "other weights")

        ended = Child(train).ended()
        expect(ended.code == 0, f"training ended with {ended}")


def check_closed_folder(rng: np.random.Generator) -> None:
    """A folder that may not be written to: an error that names it, and nothing changes."""
    saved = models()[int(rng.integers(len(models())))]
    with folder() as place:
        closed = place / "closed"
        closed.mkdir()
        (closed / "model").write_bytes(saved.data)
        model = load(closed / "model")
        place.chmod(0o777)
        closed.chmod(0o555)
        before = _listing(closed)
        way = int(rng.integers(2))

        def write() -> None:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            if way == 0:
                save(model, closed / "model")
            else:
                run = Checkpoint(closed / "run", iterations=1)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    SequenceLabeler(max_iter=3, n_jobs=1, checkpoint=run).fit(*data())

        ended = Child(write).ended()
        _said_why(ended, "PermissionError", "OSError")
        expect(way == 1 or ended.code != 0, "a closed folder was not noticed")
        expect(_listing(closed) == before, f"the folder changed: {sorted(_listing(closed))}")
        closed.chmod(0o755)


# ---- interrupts, and two at once ---------------------------------------------------------------


def check_interrupts(rng: np.random.Generator) -> None:
    """Saving that is interrupted from the keyboard, at any moment: the file is old or new."""
    first, second = (models()[int(i)] for i in rng.choice(len(models()), 2, replace=False))
    with folder() as place:
        path = place / "model"
        path.write_bytes(first.data)
        one = load(path)
        path.write_bytes(second.data)
        two = load(path)

        def write() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for _ in range(200):
                save(one, path)
                save(two, path)

        child = Child(write)
        if child.wait(float(rng.uniform(0.0, 0.3))) is None:
            child.kill(signal.SIGINT if rng.random() < 0.5 else signal.SIGKILL)
            child.ended()
        now = path.read_bytes()
        expect(now in (first.data, second.data), f"{len(now)} bytes that are neither model")


def check_two_writers(rng: np.random.Generator) -> None:
    """Two processes write one file while a third reads it: it is always one of theirs."""
    first, second = (models()[int(i)] for i in rng.choice(len(models()), 2, replace=False))
    with folder() as place:
        path = place / "model"
        loaded = []
        for saved in (first, second):
            path.write_bytes(saved.data)
            loaded.append(load(path))

        def write(model: Any) -> None:
            for _ in range(40):
                save(model, path)

        children = [Child(lambda m=m: write(m)) for i, m in enumerate(loaded)]
        for _ in range(60):
            expect(path.read_bytes() in (first.data, second.data), "neither model")
        ends = [child.wait() for child in children]
        expect(all(end.code == 0 for end in ends), ends)
        left = [each.name for each in place.iterdir() if each.name != "model"]
        expect(not left, f"left behind: {left}")


def check_threads(rng: np.random.Generator) -> None:
    """Fits and predictions in threads at once are those of one after the other."""
    chosen = [estimators()[int(i)] for i in rng.choice(len(estimators()), 3, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = [answers(estimator.fit(*given), given[0]) for estimator, given in chosen]
        found: list[Any] = [None] * 6

        def work(i: int) -> None:
            estimator, given = chosen[i % 3]
            try:
                other = type(estimator)(**estimator.get_params(deep=False)).fit(*given)
                found[i] = answers(other, given[0]) if i < 3 else answers(estimator, given[0])
            except Exception as error:
                found[i] = error

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i, answer in enumerate(found):
        name = type(chosen[i % 3][0]).__name__
        expect(not isinstance(answer, Exception), name, repr(answer))
        expect(same(answer, right[i % 3]), f"{name} in threads answers differently")


# ---- little memory -------------------------------------------------------------------------------


def check_memory(rng: np.random.Generator) -> None:
    """Work that needs more memory than there is ends by an error, not by a crash."""
    room = int(2 ** rng.uniform(20, 28))
    work = _WORK[int(rng.integers(len(_WORK)))]
    with folder() as place:
        work(place, 0.01)  # compile, and load what is loaded once

        def starve() -> None:
            with at_most_memory(room):
                work(place, 1.0)

        _said_why(Child(starve).ended(), "MemoryError", "numpy.", "OSError")


def _long_chain(place: pathlib.Path, size: float) -> None:
    infer(chain(np.zeros((int(2e5 * size) + 2, 5)), np.eye(5)), "marginals", n_jobs=1)


def _columns(place: pathlib.Path, size: float) -> None:
    parse_columns(b"word tag\n" * int(3e6 * size))


def _uai(place: pathlib.Path, size: float) -> None:
    n = int(1e6 * size)
    (place / "a.uai").write_bytes(b"MARKOV %d %s 0" % (n, b"2 " * n))
    read_uai(place / "a.uai")


def _fit(place: pathlib.Path, size: float) -> None:
    X = [np.ones((int(1e5 * size) + 2, 20))]
    SequenceLabeler(max_iter=2, n_jobs=1).fit(X, [np.arange(len(X[0])) % 3])


_WORK = (_long_chain, _columns, _uai, _fit)
