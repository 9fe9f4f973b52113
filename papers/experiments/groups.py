"""Hidden groups of users on Twitter: the first row of figure 1 of the paired-dual paper.

References
----------
S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs", 2015,
section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from papers.arrays import Bools, Floats, Ints
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.data.politicians import Politicians
from papers.documents import PAIRED_DUAL
from papers.experiments import duals
from papers.experiments.duals import BASELINES, FINEST, LEARNERS, Course, Measure
from papers.experiments.trust import Judge, average_precision, objective_of
from papers.inside import AtomTables, Grounding, Program, ground
from papers.pictures import PALETTE, new_figure
from structlearn.rules import parse

FOLDS = 10
_LINKS = {"Mentions": "mention", "Follows": "follow"}
_LEAN = 0.9  # how far first weights of rules may be from 1
_BINS = 20  # of the picture of groups
_MEASURE = Measure("AuPR", axis="0 to 0.4, other data")
_COURSE, _QUICK = Course(), Course(updates=20, sizes=(0.3,), points=4)


@dataclass(frozen=True, eq=False)
class Village:
    """Users, some of whom are always seen, and the fold of each."""

    people: Politicians
    folds: Ints

    @classmethod
    def load(cls, seed: Any) -> Village:
        """Draw the folds at random."""
        people = Politicians.load()
        folds = np.random.default_rng(seed).permutation(len(people.users)) % FOLDS
        return cls(people, folds)

    def split(self, fold: int) -> tuple[Grounding, Grounding]:
        """Return the fields to learn from, by the fold before, and to test on.

        When learning, the users of the fold are not there at all.
        """
        held = self.folds == fold
        before = self.folds == (fold - 1) % FOLDS
        rules = self.rules(self.people.retweets[~held & ~before])
        return self.field(rules, ~held, before), self.field(rules, np.ones_like(held), held)

    def rules(self, seen: Floats) -> Program:
        """Return what groups say of retweets, for every top user, and links of groups.

        Groups that begin alike would stay so: first weights lean to the side that the top user has
        in the main direction of the retweets that are seen.
        """
        lean = np.linalg.svd(seen - seen.mean(axis=0))[2][0]
        lean *= _LEAN / np.abs(lean).max()
        text = [
            f"{1.0 + side * way * lean[i]:.6f}: User(U) & {group}Group(U) "
            f"-> {says}Retweets(U, '{t}') ^2"
            for i, t in enumerate(self.people.top)
            for side, group in ((1, ""), (-1, "!"))
            for way, says in ((1, ""), (-1, "!"))
        ]
        text += [
            f"0.1: {link}(U, V) & Group({a}) -> Group({b}) ^2"
            for link in _LINKS
            for a, b in ("UV", "VU")
        ]
        return parse("\n".join(text))

    def field(self, rules: Program, present: Bools, asked: Bools) -> Grounding:
        """Ground rules on the users that are present; retweets of some are asked for."""
        arities = {"User": 1, "Group": 1, "Retweets": 2} | dict.fromkeys(_LINKS, 2)
        tables = AtomTables(arities, n_jobs=1)
        users = np.array(self.people.users)
        here = users[present]
        tables.observe("User", here[:, None].tolist())
        for name, kind in _LINKS.items():
            tables.observe(name, self.people.among(kind, set(here.tolist())))
        tables.observe("Retweets", self._rows(present & ~asked))
        rows = self._rows(present & asked)
        tables.target("Retweets", [row[:2] for row in rows])
        tables.truth("Retweets", rows)
        tables.target("Group", here[:, None].tolist())
        return ground(rules, tables)

    def _rows(self, which: Bools) -> list[tuple[int, int, float]]:
        people = self.people
        return [
            (people.users[i], t, float(people.retweets[i, j]))
            for i in np.flatnonzero(which)
            for j, t in enumerate(people.top)
        ]

    def baselines(self, fold: int) -> dict[str, float]:
        """Scores by how often others retweet a top user, all or those of the same party."""
        held = self.folds == fold
        party = np.array([self.people.parties[user] for user in self.people.users])
        retweets = self.people.retweets
        truth = retweets[held].ravel()
        everyone = np.tile(retweets[~held].mean(axis=0), int(held.sum()))
        same = [retweets[~held & (party == p)].mean(axis=0) for p in party[held]]
        return {
            "popularity": average_precision(truth, everyone),
            "popularity within the true party": average_precision(truth, np.concatenate(same)),
        }


class Groups(Judge):
    """The judge of retweets, which also tells the groups."""

    def of_parties(self, people: Politicians, test: Grounding, weights: Floats) -> dict[str, Any]:
        """Counts of users by group, for each party, and the area under the curve of telling them.

        Which party is high is open.
        """
        self(weights)
        atoms, (users,) = test.tables.arguments("Group")
        values = self.state.consensus[atoms]
        party = np.array([people.parties[user] for user in users.tolist()])
        counts = {
            p: np.histogram(values[party == p], _BINS, (0.0, 1.0))[0].tolist() for p in ("D", "R")
        }
        above = values[party == "D"][:, None] - values[party == "R"]
        area = float((above > 0.0).mean() + 0.5 * (above == 0.0).mean())
        return {"counts": counts, "area": max(area, 1.0 - area)}


# ---- the experiment ----------------------------------------------------------------------


def units(settings: Settings) -> list[dict[str, Any]]:
    """Return one unit for each fold and learner."""
    return [
        {"fold": fold, "learner": learner, "seed": settings.seed, "quick": settings.quick}
        for fold in range(min(settings.count(FOLDS, 1), FOLDS))
        for learner in (*LEARNERS, BASELINES)
    ]


def work(fold: int, learner: str, seed: int, quick: bool) -> dict[str, Any]:
    """Learn from one fold and predict another."""
    village = Village.load(seed)
    if learner == BASELINES:
        return {"scores": village.baselines(fold)}
    learn, test = village.split(fold)
    objective = objective_of(learn)
    judge = Groups(objective, test, negative=False)
    course = _QUICK if quick else _COURSE
    path = course.learn(learner, objective)
    groups = judge.of_parties(village.people, test, path.weights[-1])
    return path.curve(objective, judge, course.points) | groups


def report(done: Units) -> Report:
    """Compare learners, and look at the groups."""
    areas = {
        name: [unit.found["area"] for unit in duals.of_learner(done, name)] for name in LEARNERS
    }
    rows = [{"learner": name, "area": Estimate.of(each)} for name, each in areas.items()]
    claims = (
        Claim.above("hidden groups are those of the two sides (area)", areas[FINEST], than=0.9),
        Claim.apart(
            "AuPR as in the figure", "its tweets are not available; these are of other people"
        ),
    )
    found = duals.report(done, _MEASURE, claims)
    groups = Table.of("Parties told by the hidden group: area under the ROC curve", rows)
    return Report((*found.tables, groups), found.claims)


def draw_groups(done: Units) -> Any:
    """Draw how many users of each party have which value of the hidden group."""
    counts = next(duals.of_learner(done, FINEST)).found["counts"]
    axes = new_figure().subplots()
    middles = (np.arange(_BINS) + 0.5) / _BINS
    for i, (party, n) in enumerate(counts.items()):
        shift = (i - 0.5) * 0.4 / _BINS
        axes.bar(middles + shift, n, 0.4 / _BINS, color=PALETTE[i], label=party)
    axes.set(xlabel="hidden group", ylabel="users")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    Experiment(
        "groups",
        PAIRED_DUAL,
        "figure 1, row 1",
        "How many steps of ADMM does it take to learn hidden groups that predict retweets?",
        LEARNERS,
        units,
        work,
        report,
        {"curves": partial(duals.draw, measure=_MEASURE.name), "groups": draw_groups},
        (
            *duals.READINGS,
            "The Venezuelan tweets are not available. Here are 583 US politicians: retweets of the "
            "20 most retweeted are predicted for the 515 others who have retweeted one, from whom "
            "these mention and follow among themselves; there are no hashtags. Parties are not "
            "given: they check the groups.",
            "One rule for each top user, group and answer, as in the paper, so 84 weights with "
            "those of links. The fold before has the labels to learn from, others are observed.",
            "The surrogate is the loss of latent structured support vector machines, section 3.1.",
        ),
        ("twitter_politicians",),
    ),
)
