r"""
Who trusts whom: rules with latent variables
============================================

People rate some of those whom they know as trusted or not. Who is *trustworthy*, and who is
*trusting*, nobody writes down. Weighted rules say what follows from what,

.. math:: E(y) = \sum_r w_r \sum_{i \in r} \max(l_i(y), 0)^2 ,

where :math:`l_i` is how far a grounding of rule :math:`r` is from being satisfied. Learning finds
the weights although both traits are latent.
"""

import matplotlib.pyplot as plt
import numpy as np

from structlearn import RuleModel

# %%
# A made-up network. A rating is high where the rated one is trustworthy, and a bit more so where
# the other one is trusting; one in twenty is turned round.
rng = np.random.default_rng(0)
people = 60
worthy = rng.beta(0.5, 0.5, people)
trusting = rng.random(people)
knows = np.argwhere((rng.random((people, people)) < 0.3) & ~np.eye(people, dtype=bool))
likely = 0.8 * worthy[knows[:, 1]] + 0.2 * trusting[knows[:, 0]] > 0.5
trusts = np.where(rng.random(len(knows)) < 0.95, likely, ~likely).astype(float)
known = rng.random(len(knows)) < 0.7
print(f"{len(knows)} ratings, {known.sum()} of them known")

# %%
# The rules, all with the same weight: four about traits, and three that hold in many networks but
# not in this one. A trait draws ratings up and is drawn up by them, and likewise down.
model = RuleModel("""
    1: Knows(A, B) & Worthy(B) -> Trusts(A, B) ^2
    1: Knows(A, B) & !Worthy(B) -> !Trusts(A, B) ^2
    1: Knows(A, B) & Trusting(A) -> Trusts(A, B) ^2
    1: Knows(A, B) & !Trusting(A) -> !Trusts(A, B) ^2
    1: Knows(A, B) & Knows(B, A) & Trusts(A, B) -> Trusts(B, A) ^2
    1: Knows(A, B) & Knows(B, C) & Knows(A, C) & Trusts(A, B) & Trusts(B, C) -> Trusts(A, C) ^2
    1: Knows(A, B) & Knows(B, C) & Knows(A, C) & !Trusts(A, B) & !Trusts(B, C) -> Trusts(A, C) ^2
    0.1: Worthy(A) = 0.5 ^2
    0.1: Trusting(A) = 0.5 ^2
""")
everyone = [(i,) for i in range(people)]
rated = [(*pair, value) for pair, value in zip(knows.tolist(), trusts, strict=True)]
train = [row for row, seen in zip(rated, known, strict=True) if seen]
test = [row for row, seen in zip(rated, known, strict=True) if not seen]


def ask_about_new_ratings(model):
    """Known ratings are observed; the others are to be found."""
    model.clear().observe(Knows=knows.tolist(), Trusts=train)
    model.target(Trusts=[row[:2] for row in test], Worthy=everyone, Trusting=everyone)
    return model.truth(Trusts=test)


before = ask_about_new_ratings(model).score(metric="auroc", predicate="Trusts")
print(f"{sum(size.groundings for size in model.estimate())} groundings, AUROC {before:.3f}")

# %%
# Learning practises what is asked of it later: of the known ratings two in three are observed and
# the others are targets, with their truth; the traits are targets without. Subgradients infer to
# the end before every step of the weights. Paired-dual learning takes a single step of ADMM, and
# goes on from where inference stood: per step of the weights it does as well, and it gets there
# with a fraction of the inference.
seen = [row for i, row in enumerate(train) if i % 3]
asked = [row for i, row in enumerate(train) if not i % 3]
figure, axis = plt.subplots(layout="constrained")
settings = {"rule": "adagrad", "step_size": 0.3, "max_iter": 60, "tol": None}
for driver in ("subgradient", "paired"):
    model.weights_ = [1, 1, 1, 1, 1, 1, 1, 0.1, 0.1]
    model.clear().observe(Knows=[row[:2] for row in train], Trusts=seen)
    model.target(Trusts=[row[:2] for row in asked], Worthy=everyone, Trusting=everyone)
    model.truth(Trusts=asked)
    model.fit(driver=driver, latent=["Worthy", "Trusting"], **settings)
    history = model.history_
    axis.plot(history.inference_steps, history.value, "o-", markersize=3, label=driver)
    spent = history.inference_steps[-1]
    print(f"{driver:<12} {spent:6.0f} steps of ADMM, objective {history.value[-1]:.1f}")
axis.set(xlabel="steps of ADMM so far, in all worlds", ylabel="objective")
axis.set_title("The same weights for less inference")
axis.legend(title="60 steps of the weights by")
plt.show()

# %%
# The weights, as rules. Those that say little about this network have lost theirs.
for weight, rule in zip(model.weights_, model.rules_, strict=True):
    print(f"{weight:5.2f}  {rule.split(': ')[1]}")

# %%
# New ratings are ranked better with these weights, and the best values come with a proof: no others
# have an energy that is lower by more than the gap.
after = ask_about_new_ratings(model).score(metric="auroc", predicate="Trusts")
print(f"AUROC {before:.3f} before, {after:.3f} after learning")
print(f"energy {model.energy_:.3f}, gap {model.gap_:.1e}")

# %%
# The latent trait is not only a crutch: it has become an estimate of what it was named for.
found = model.predict("Worthy", frame="dict")["value"]
alike = np.corrcoef(worthy, found)[0, 1]
figure, axis = plt.subplots(layout="constrained")
axis.scatter(worthy, found)
axis.set(xlabel="trustworthiness in truth, never shown", ylabel="value of the latent atom")
axis.set_title(f"What the trait was named for: correlation {alike:.2f}")
print(f"correlation {alike:.2f}")
plt.show()

# %%
# Why is somebody in the middle? Every grounding with the atom pulls it, and the pulls balance.
middle = int(np.argmin(np.abs(found - 0.5)))
for pull in model.explain(("Worthy", middle))[:5]:
    print(pull)

# sphinx_gallery_thumbnail_number = 1
