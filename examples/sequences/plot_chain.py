"""
A chain: marginals, the best path and its rivals
================================================

A casino mostly rolls a fair die, and now and then switches to a loaded one. We see the rolls and
want to know which die was in use. The states form a chain, so every answer below is exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from structlearn import ChainDisplay, chain, infer

# %%
# Roll 300 times. The die changes with probability 0.05 after each roll; the loaded one shows a
# six half of the time.
rng = np.random.default_rng(3)
n = 300
switch = np.array([[0.95, 0.05], [0.05, 0.95]])
faces = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
die = np.zeros(n, int)
for t in range(1, n):
    die[t] = rng.choice(2, p=switch[die[t - 1]])
rolls = np.array([rng.choice(6, p=faces[d]) for d in die])

# %%
# One variable per roll. Its own factor is the log probability of the face that came up under
# either die.
graph = chain(np.log(faces[:, rolls].T), np.log(switch))
marginals = infer(graph, "marginals")
path = infer(graph, "map", k=5)
print(marginals)
print(path)

# %%
# Two ways to name a state for every roll, and they answer different questions. The best *path*
# (Viterbi) is the most probable sequence as a whole. The best *states*, one by one, make the
# fewest mistakes on average, but together may be a sequence that hardly ever happens.
probability = marginals.marginals.array()[:, 1]
viterbi = path.assignment.array
one_by_one = (probability > 0.5).astype(int)
print(f"mistakes of the best path:  {(viterbi != die).sum()}")
print(f"mistakes of the best states: {(one_by_one != die).sum()}")
print(f"log score of the best path:   {graph.score(viterbi):.3f}")
print(f"log score of the best states: {graph.score(one_by_one):.3f}")

# %%
# How far can the best path be trusted? The runners-up tell: they add or drop a whole spell of the
# loaded die and are hardly less probable.
for value, rival in path.k_best[1:]:
    moved = np.flatnonzero(rival.array != viterbi)
    times = np.exp(path.value - value)
    print(f"{times:.2f} times less probable, {len(moved)} rolls differ, from {moved[0]} on")

# %%
# Above: the probability of either die, roll by roll. Below: the best path, the best states, and
# what was really in use.
figure, axis = plt.subplots(figsize=(9, 3.5), layout="constrained")
ChainDisplay.from_answer(
    marginals,
    paths={"best path": path, "best states": one_by_one, "truth": die},
    state_names=["fair", "loaded"],
).plot(axis)
axis.set_xlabel("roll")
plt.show()
