r"""
From maximum to sum: temperatures
=================================

A maximum and a log-sum-exp are the two ends of one scale. At temperature :math:`\epsilon` the
value of a graph is

.. math:: \Phi(\epsilon) = \epsilon \log \sum_x \exp \frac{\theta(x)}{\epsilon},

which is :math:`\log Z` at 1 and tends to the MAP score :math:`\max_x \theta(x)` at 0. Its
gradient with respect to the potentials is a distribution: the marginals at 1, all mass on the best
assignment at 0. Outputs and hidden variables have a temperature each.
"""

import matplotlib.pyplot as plt
import numpy as np

from structlearn import hidden_chain, infer

# %%
# A small hidden chain: 4 outputs with 3 states, 4 hidden variables with 3 states.
rng = np.random.default_rng(1)
graph = hidden_chain(
    rng.normal(size=(4, 3)),
    rng.normal(size=(4, 3)),
    rng.normal(size=(3, 3)),
    rng.normal(size=(3, 3)),
)

# %%
# One temperature for all variables, then only the outputs cooled, then only the hidden ones.
temperatures = np.linspace(0.0, 1.0, 21)
ways = {
    "both": [(eps, eps) for eps in temperatures],
    "outputs (hidden at 1)": [(eps, 1.0) for eps in temperatures],
    "hidden (outputs at 1)": [(1.0, eps) for eps in temperatures],
}
values = {
    name: [infer(graph, "partition", temperatures=pair).value for pair in pairs]
    for name, pairs in ways.items()
}

# %%
# The four corners have names. The value never falls as a temperature rises.
for pair, name in (
    ((0.0, 0.0), "joint MAP score"),
    ((0.0, 1.0), "marginal-MAP score"),
    ((1.0, 0.0), "sum over outputs of their best explanation"),
    ((1.0, 1.0), "log Z"),
):
    answer = infer(graph, "partition", temperatures=pair)
    print(f"{pair}: {answer.value:.4f}  {name} ({answer.status})")

# %%
# The marginals of the first output along the way: from a certain answer to the distribution.
marginals = np.array(
    [infer(graph, "marginals", temperatures=(eps, eps)).marginals[0] for eps in temperatures]
)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, line in values.items():
    left.plot(temperatures, line, label=name)
left.set(xlabel="temperature", ylabel="value", title="From the best score to log Z")
left.legend(title="what is cooled")
for state in range(3):
    right.plot(temperatures, marginals[:, state], label=f"state {state}")
right.set(xlabel="temperature of all variables", ylabel="marginal of output 0")
right.set_title("From one state to a distribution")
right.legend()
plt.show()
