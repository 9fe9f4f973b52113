"""Weights of rules by the defaults of `fit`, on held-out folds: groups, trust and citations.

Every program is learnt as it is used: a fold is held out, the one before has the labels to learn
from, and what is left is observed. The rules then predict the fold, all others being observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Bools, Floats, Ints
from papers.base import Claim, Experiment, Report, Settings, Table, Units
from papers.documents import PAIRED_DUAL
from papers.experiments.duals import mean_text
from papers.experiments.trust import average_precision
from papers.experiments.trust import rules as trust_rules
from structlearn import RuleModel
from structlearn.datasets import data_path

_FOLDS = 5  # that are run
_TOP = 20  # users whose retweets are predicted
_EARLIEST = 1500  # users of Bitcoin OTC, by number: a fifth of all, with the most links

SYSTEMS = ("popularity", "equal weights", "learnt")

Rows = list[tuple[Any, ...]]


class Relations(NamedTuple):
    """Atoms to observe, to find, and their true values, by predicate."""

    observed: dict[str, Rows]
    targets: dict[str, Rows]
    truth: dict[str, Rows]


@dataclass(frozen=True, eq=False)
class Task:
    """A program, and how its atoms follow from which of its items are seen and asked for."""

    name: str
    rules: str
    predicate: str
    metric: str
    folds: Ints  # (items) from 0; -1 where an item is always seen
    relate: Callable[[Bools, Bools], Relations]
    popular: Callable[[Bools], dict[Any, float]]  # by the atom's last argument, from what is seen

    def model(self, seen: Bools, asked: Bools) -> RuleModel:
        """Lay the rules over the atoms."""
        atoms = self.relate(seen, asked)
        model = RuleModel(self.rules, n_jobs=1)
        return model.observe(atoms.observed).target(atoms.targets).truth(atoms.truth)

    def scores(self, fold: int) -> dict[str, float]:
        """Score of a fold by popularity, by equal weights, and by those that were learnt."""
        n = int(self.folds.max()) + 1
        held = self.folds == fold
        labelled = self.folds == (fold - 1) % n
        learnt = self.model(~held & ~labelled, labelled).fit()
        test = self.model(~held, held)
        rows = self.relate(~held, held).truth[self.predicate]
        rates = self.popular(~held)
        guess = np.array([rates[row[-2]] for row in rows])
        truth = np.array([row[-1] for row in rows])
        negative = self.metric == "aupr_negative"
        found = {"popularity": average_precision(truth, guess, negative=negative)}
        soft = np.isfinite(learnt.weights_)
        for how, weights in (("equal weights", 1.0), ("learnt", learnt.weights_)):
            test.weights_ = np.where(soft, weights, np.inf)
            found[how] = test.score(metric=self.metric, predicate=self.predicate)
        return found


def units(settings: Settings) -> list[dict[str, Any]]:
    """Return one unit for each program and fold."""
    names = ("citeseer",) if settings.quick else tuple(TASKS)
    folds = range(min(settings.count(_FOLDS, 1), _FOLDS))
    return [{"program": name, "fold": i, "seed": settings.seed} for name in names for i in folds]


def work(program: str, fold: int, seed: int) -> dict[str, float]:
    """Score one fold of a program."""
    return TASKS[program](seed).scores(fold)


def report(done: Units) -> Report:
    """Compare learnt weights with others, program by program."""
    rows, claims = [], []
    for name in dict.fromkeys(unit.given["program"] for unit in done):
        folds = [unit.found for unit in done if unit.given["program"] == name]
        means = {how: mean_text([each[how] for each in folds]) for how in SYSTEMS}
        gains = [f["learnt"] - max(f["popularity"], f["equal weights"]) for f in folds]
        rows.append({"program": name, **means, "folds won": sum(gain > 0.0 for gain in gains)})
        says = f"{name}: learnt weights rank better than popularity and equal weights"
        claims.append(Claim.above(says, gains))
    heading = f"{len(folds)} folds, area under precision and recall"
    return Report((Table.of(heading, rows),), tuple(claims))


def _folds(n: int, folds: int, seed: int) -> Ints:
    return np.random.default_rng(seed).permutation(n) % folds


def _shrunk(keys: Iterable[Any], values: Floats) -> dict[Any, float]:
    """Mean of the values by key, each with the mean of all as one more."""
    mean = float(np.mean(values))
    sums: dict[Any, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        sums.setdefault(key, [mean]).append(float(value))
    return _Rates(mean, {key: float(np.mean(each)) for key, each in sums.items()})


class _Rates(dict[Any, float]):
    """Rates by key; the mean for keys that were not seen."""

    def __init__(self, mean: float, rates: dict[Any, float]) -> None:
        super().__init__(rates)
        self.mean = mean

    def __missing__(self, key: Any) -> float:
        return self.mean


# ---- groups --------------------------------------------------------------------------------


def groups(seed: int) -> Task:
    """Politicians and whom they retweet: hidden groups, which the leaders of two parties anchor."""
    relations = _read("twitter_politicians", "relations.csv")
    parties = [row[1] for row in _read("twitter_politicians", "users.csv")]
    pairs = {
        kind: [(int(a), int(b)) for of, a, b, _ in relations if of == kind and a != b]
        for kind in ("retweet", "mention")
    }
    popular = np.bincount([b for _, b in pairs["retweet"]], minlength=len(parties))
    top = sorted(np.argsort(-popular, kind="stable")[:_TOP].tolist())
    users = [user for user in range(len(parties)) if user not in top]
    mentions = [pair for pair in pairs["mention"] if not set(pair) & set(top)]
    named = np.bincount([b for _, b in mentions], minlength=len(parties))
    leaders = [max((u for u in users if parties[u] == p), key=lambda u: named[u]) for p in "DR"]
    folds = _folds(len(users), 5, seed)
    folds[[users.index(user) for user in leaders]] = -1
    retweets = set(pairs["retweet"])

    def rows(which: Bools) -> Rows:
        chosen = [user for user, yes in zip(users, which, strict=True) if yes]
        return [(user, t, float((user, t) in retweets)) for user in chosen for t in top]

    def relate(seen: Bools, asked: Bools) -> Relations:
        here = {user for user, yes in zip(users, seen | asked, strict=True) if yes}
        observed: dict[str, Rows] = {
            "User": [(user,) for user in sorted(here)],
            "Mentions": [pair for pair in mentions if set(pair) <= here],
            "Group": [(leaders[0], 1.0), (leaders[1], 0.0)],
            "Retweets": rows(seen),
        }
        hidden: Rows = [(user,) for user in sorted(here) if user not in leaders]
        targets = {"Retweets": [row[:2] for row in rows(asked)], "Group": hidden}
        return Relations(observed, targets, {"Retweets": rows(asked)})

    def popularity(seen: Bools) -> dict[Any, float]:
        known = rows(seen)
        return _shrunk([row[1] for row in known], np.array([row[2] for row in known]))

    text = [
        f"1: User(U) & {group}Group(U) -> {says}Retweets(U, '{t}') ^2"
        for t in top for group in ("", "!") for says in ("", "!")
    ]  # fmt: skip
    text += [f"1: Mentions(U, V) & Group({a}) -> Group({b}) ^2" for a, b in ("UV", "VU")]
    return Task("groups", "\n".join(text), "Retweets", "aupr", folds, relate, popularity)


# ---- trust ---------------------------------------------------------------------------------


def epinions(seed: int) -> Task:
    """Who trusts whom on Epinions, with hidden traits."""
    rows = _read("epinions", "trust.csv")
    links = np.array([row[:2] for row in rows], np.int64)
    return _trust("epinions", links, np.array([float(row[2]) for row in rows]), seed)


def bitcoin(seed: int) -> Task:
    """The same on Bitcoin OTC, among its earliest users."""
    parts = [
        line.split()
        for name in ("trusts_obs.txt", "trusts_truth.txt")
        for line in data_path("psl", "bitcoin-otc-trust", "infer", name).read_text().splitlines()
    ]
    rows = [row for row in parts if max(int(row[0]), int(row[1])) <= _EARLIEST]
    links = np.array([row[:2] for row in rows], np.int64)
    return _trust("bitcoin-otc", links, np.array([float(row[2]) for row in rows]), seed)


def _trust(name: str, links: Ints, trust: Floats, seed: int) -> Task:
    def rows(which: Bools) -> Rows:
        pairs = zip(links[which].tolist(), trust[which].tolist(), strict=True)
        return [(*pair, value) for pair, value in pairs]

    def relate(seen: Bools, asked: Bools) -> Relations:
        here = links[seen | asked]
        observed = {
            "Knows": [tuple(pair) for pair in here.tolist()],
            "Trusts": rows(seen),
            "Prior": [("0", float(trust[seen].mean()))],
        }
        targets: dict[str, Rows] = {"Trusts": [row[:2] for row in rows(asked)]}
        for trait, users in (("Trusting", here[:, 0]), ("Trustworthy", here[:, 1])):
            targets[trait] = [(user,) for user in np.unique(users).tolist()]
        return Relations(observed, targets, {"Trusts": rows(asked)})

    def popularity(seen: Bools) -> dict[Any, float]:
        return _shrunk(links[seen, 1].tolist(), trust[seen])

    text = "\n".join(map(str, trust_rules()))
    folds = _folds(len(links), 8, seed)
    return Task(name, text, "Trusts", "aupr_negative", folds, relate, popularity)


# ---- citations -----------------------------------------------------------------------------


def citations(name: str, seed: int) -> Task:
    """Topics of papers that cite each other, by the program in the data's own folder."""
    folder = data_path("psl", name, "infer")
    topics = {
        int(paper): int(topic)
        for file in ("hasCat_obs.txt", "hasCat_truth.txt")
        for paper, topic, value in map(str.split, (folder / file).read_text().splitlines())
        if float(value) == 1.0
    }
    cites = (folder / "link_obs.txt").read_text().splitlines()
    links = [tuple(map(int, line.split()[:2])) for line in cites]
    papers = sorted(topics)
    classes = sorted(set(topics.values()))

    def rows(which: Bools) -> Rows:
        chosen = [paper for paper, yes in zip(papers, which, strict=True) if yes]
        return [(paper, c, float(topics[paper] == c)) for paper in chosen for c in classes]

    def relate(seen: Bools, asked: Bools) -> Relations:
        here = {paper for paper, yes in zip(papers, seen | asked, strict=True) if yes}
        cited = [link for link in links if set(link) <= here]
        targets = {"HasCat": [row[:2] for row in rows(asked)]}
        return Relations({"Link": cited, "HasCat": rows(seen)}, targets, {"HasCat": rows(asked)})

    def popularity(seen: Bools) -> dict[Any, float]:
        known = rows(seen)
        return _shrunk([row[1] for row in known], np.array([row[2] for row in known]))

    text = data_path("psl", name, "model.psl").read_text()
    folds = _folds(len(papers), 5, seed)
    return Task(name, text, "HasCat", "aupr", folds, relate, popularity)


def _read(*path: str) -> list[list[str]]:
    lines = data_path(*path).read_text().splitlines()
    return [line.split(",") for line in lines[1:]]


#: Makers of the tasks, in the order of the table.
TASKS: dict[str, Callable[[int], Task]] = {
    "groups": groups,
    "epinions": epinions,
    "bitcoin-otc": bitcoin,
    "cora": lambda seed: citations("cora", seed),
    "citeseer": lambda seed: citations("citeseer", seed),
}


EXPERIMENTS = (
    Experiment(
        "rule-weights",
        PAIRED_DUAL,
        "beside figure 1",
        "What do the defaults of `fit` learn on groups, trust and citations?",
        SYSTEMS,
        units,
        work,
        report,
        readings=(
            "Not of the paper: the defaults of the library, whose driver is not paired-dual "
            "learning. AuPR of distrust for trust, of what holds for the others.",
            "Folds: 5 of 5 for groups and citations, 5 of 8 for trust.",
            "Popularity: how often others do the same, or trust the same user; the class's share.",
            f"Bitcoin OTC: links among the users with numbers up to {_EARLIEST}.",
        ),
        data=("psl", "epinions", "twitter_politicians"),
    ),
)
