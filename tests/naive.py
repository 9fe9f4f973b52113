"""Slow, obvious versions of everything: the oracles of the test suite."""

from __future__ import annotations

import itertools
import re

import numpy as np


def soft_max(values, eps):
    """eps * log sum exp(values / eps); the plain maximum at eps = 0."""
    values = np.asarray(values, float)
    top = values.max()
    if eps == 0 or top == -np.inf:
        return float(top)
    return float(top + eps * np.log(np.exp((values - top) / eps).sum()))


def assignments(cards):
    return itertools.product(*(range(c) for c in cards))


def score(graph, labels):
    """Sum of log potentials at a full assignment, straight from the tables."""
    return sum(
        graph.table(f)[tuple(labels[v] for v in graph.scope(f))] for f in range(graph.n_factors)
    )


def joint(graph):
    """Log potentials of all assignments, one axis per variable."""
    table = np.zeros(tuple(graph.cards) or ())
    for f in range(graph.n_factors):
        scope = list(graph.scope(f))
        order = np.argsort(scope)
        shape = [graph.cards[v] if v in scope else 1 for v in range(graph.n_variables)]
        table = table + graph.table(f).transpose(order).reshape(shape)
    return table


def value_and_distribution(graph, eps_output=1.0, eps_hidden=1.0, table=None):
    """Soft-maximum value at two temperatures and the distribution that is its gradient.

    At temperature 0 the distribution puts all its mass on the first maximiser. `table` replaces
    the graph's own joint table, to ask about many temperatures or about evidence.
    """
    table = joint(graph) if table is None else table
    hidden = [v for v in range(graph.n_variables) if graph.roles[v] == 1]
    outputs = [v for v in range(graph.n_variables) if graph.roles[v] != 1]
    flat = table.transpose(outputs + hidden).reshape(
        int(np.prod([graph.cards[v] for v in outputs])), -1
    )
    inner = _soft_max_rows(flat, eps_hidden)
    value = soft_max(inner, eps_output)
    weights = _gradient(inner[None], [value], eps_output).T * _gradient(flat, inner, eps_hidden)
    shape = [graph.cards[v] for v in outputs + hidden]
    return value, weights.reshape(shape).transpose(np.argsort(outputs + hidden))


def _soft_max_rows(table, eps):
    """`soft_max` of every row."""
    top = table.max(axis=1)
    if eps == 0:
        return top
    shift = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + eps * np.log(np.exp((table - shift[:, None]) / eps).sum(axis=1))


def _gradient(table, values, eps):
    """Gradient of the soft maximum of every row; zeros where a row has no finite entry."""
    values = np.asarray(values)[:, None]
    if eps == 0:
        first = np.arange(table.shape[1]) == table.argmax(axis=1)[:, None]
        return np.where(values > -np.inf, first, 0.0)
    return np.where(values > -np.inf, np.exp((table - np.maximum(values, -1e300)) / eps), 0.0)


def marginal(distribution, scope):
    """Marginal over the variables of `scope`, axes in the order of `scope`."""
    drop = tuple(v for v in range(distribution.ndim) if v not in scope)
    out = distribution.sum(axis=drop)
    kept = [v for v in range(distribution.ndim) if v in scope]
    return out.transpose([kept.index(v) for v in scope])


def clique(rng, n=7, states=5):
    """Every pair of variables has a factor, and so has every variable."""
    from structlearn import FactorGraph

    graph = FactorGraph()
    graph.add_variables(n, states)
    for a in range(n):
        graph.add_factor([a], rng.normal(size=states))
        for b in range(a):
            graph.add_factor([a, b], rng.normal(size=(states, states)))
    return graph


def random_graph(
    rng,
    n_variables=6,
    max_card=3,
    max_arity=3,
    kind="loopy",
    zeros=0.0,
    hidden=0.0,
    min_card=None,
):
    """A random graph of a kind: "tree", "loopy", "chain" or "forest".

    A fraction `zeros` of the entries is -inf, but one random assignment stays possible.
    """
    from structlearn import FactorGraph

    graph = FactorGraph()
    least = min_card or (1 if kind == "loopy" else 2)
    cards = rng.integers(least, max_card + 1, n_variables)
    roles = np.where(rng.random(n_variables) < hidden, "hidden", "output")
    for card, role in zip(cards, roles, strict=True):
        graph.add_variable(None, int(card), str(role))
    safe = [int(rng.integers(c)) for c in cards]

    def add(scope):
        table = rng.normal(0, 1.5, tuple(cards[list(scope)]))
        table[rng.random(table.shape) < zeros] = -np.inf
        table[tuple(safe[v] for v in scope)] = rng.normal()
        graph.add_factor([int(v) for v in scope], table)

    for v in range(n_variables):
        if rng.random() < 0.7:
            add((v,))
    if kind == "chain":
        order = rng.permutation(n_variables)
        for a, b in itertools.pairwise(order):
            add((a, b) if rng.random() < 0.5 else (b, a))
    elif kind in ("tree", "forest"):
        joined = [0]
        v = 1
        while v < n_variables:
            more = min(int(rng.integers(1, max_arity)), n_variables - v)
            scope = list(range(v, v + more))
            if kind == "tree" or rng.random() < 0.7:
                scope.append(int(rng.choice(joined)))
            if len(scope) > 1:
                add(rng.permutation(scope))
            joined += range(v, v + more)
            v += more
    else:
        for _ in range(int(rng.integers(n_variables // 2, 2 * n_variables))):
            arity = int(rng.integers(2, max_arity + 1))
            add(rng.choice(n_variables, min(arity, n_variables), replace=False))
    return graph


def energy(graph, labels):
    """Number of forbidden entries in use, and minus the sum of the others: less is better."""
    entries = [
        graph.table(f)[tuple(labels[v] for v in graph.scope(f))] for f in range(graph.n_factors)
    ]
    finite = [e for e in entries if e > -np.inf]
    return len(entries) - len(finite), -float(sum(finite))


def lower(new, old, tol=1e-9):
    """Whether energy `new` is below `old` by more than rounding."""
    return new[0] < old[0] or (new[0] == old[0] and new[1] < old[1] - tol)


def flips(graph, labels):
    """All assignments that differ from `labels` in one variable, variables in order."""
    for v in range(graph.n_variables):
        for k in range(graph.cards[v]):
            if k != labels[v]:
                yield [*labels[:v], k, *labels[v + 1 :]]


def steepest_flip(graph, labels):
    """The best single change, the first of them if several are; None if none helps."""
    best = None
    best_energy = energy(graph, labels)
    for other in flips(graph, list(labels)):
        new = energy(graph, other)
        if lower(new, best_energy):
            best, best_energy = other, new
    return best


def icm_sweep(graph, labels):
    """Every variable in order takes its best state, or keeps its own if none is better."""
    labels = list(labels)
    for v in range(graph.n_variables):
        for k in range(graph.cards[v]):
            other = [*labels[:v], k, *labels[v + 1 :]]
            if lower(energy(graph, other), energy(graph, labels)):
                labels = other
    return labels


def trap():
    """Only (1, 1) is allowed, but at (0, 0) every single change breaks more than it mends."""
    from structlearn import FactorGraph

    graph = FactorGraph()
    graph.add_variables(2, 2)
    graph.add_factors([[0], [1]], [5.0, 0.0])
    graph.add_factors([[0, 1]] * 3, np.where(np.eye(2), 0.0, -np.inf))
    graph.add_factor([0, 1], [[-np.inf, 0.0], [0.0, 0.0]])
    return graph


def observed(table, evidence):
    """A joint table in which everything against the evidence is impossible."""
    keep = np.zeros(table.shape, bool)
    keep[tuple(evidence.get(v, slice(None)) for v in range(table.ndim))] = True
    return np.where(keep, table, -np.inf)


def marginal_map_values(graph, eps_hidden=1.0, table=None):
    """Value of every assignment to the outputs with the hidden variables summed out.

    One axis per output, in order.
    """
    table = joint(graph) if table is None else table
    hidden = [v for v in range(graph.n_variables) if graph.roles[v] == 1]
    outputs = [v for v in range(graph.n_variables) if graph.roles[v] != 1]
    cards = [int(graph.cards[v]) for v in outputs]
    flat = table.transpose(outputs + hidden).reshape(int(np.prod(cards)), -1)
    return _soft_max_rows(flat, eps_hidden).reshape(cards)


def tied_down(rng, graph):
    """The graph with a factor on every variable that had none, so that no two states tie."""
    for v in np.setdiff1d(np.arange(graph.n_variables), graph.wiring.scopes):
        graph.add_factor([int(v)], rng.normal(size=graph.cards[v]))
    return graph


# ---- text --------------------------------------------------------------------------------


def column_lines(data):
    """Sentences of a column file, each a list of rows of cells."""
    sentences, current = [], []
    for line in data.decode("utf-8-sig").split("\n"):
        cells = re.findall("[^ \t\r]+", line)
        if cells and cells[0] != "-DOCSTART-":
            current.append(cells)
        elif current:
            sentences.append(current)
            current = []
    return sentences + [current] * bool(current)


def expand(text, sentence):
    """Attributes of every token by a CRF++ template, as strings: with one label, with two."""

    def cell(i, column):
        if i < 0:
            return f"_B{i}"
        return f"_B+{i - len(sentence) + 1}" if i >= len(sentence) else sentence[i][column]

    unigram, bigram = [[] for _ in sentence], [[] for _ in sentence]
    for line in filter(None, text.split("\n")):
        for t in range(len(sentence)):

            def fill(match, t=t):
                return cell(t + int(match[1]), int(match[2]))

            filled = re.sub(r"%x\[(-?\d+),(\d+)\]", fill, line)
            if line.startswith("U"):
                unigram[t].append(filled)
            elif "%" in line and t > 0:
                bigram[t].append(filled)
    return unigram, bigram


def chunks(tags):
    """Chunks (start, end, type) of one sequence, by the rules that conlleval has for pairs."""

    def cut(tag):
        return tuple(tag.partition("-")[::2])

    found = set()
    start = None
    for i, (before, now) in enumerate(itertools.pairwise(["O", *tags, "O"])):
        (p, p_type), (t, t_type) = cut(before), cut(now)
        other = p_type != t_type
        ends = (p, t) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")} or p in "ES"
        ends = p != "O" and (ends or other or t == "S")
        if ends:
            found.add((start, i, p_type))
        begins = t in "BS" or (p in "OES" and t in "IE")
        if t != "O" and (begins or other):
            start = i
    return found


def two_worlds(scores, cards, labels, eps_y, eps_h, costs=None):
    """Loss of one example by enumeration, and its gradient by the scores.

    `scores` has one entry per assignment, the last variable fastest; variables labelled -1 are
    hidden. `costs` (variables, states) is what every state costs, 0 for hidden variables. Eq. (5)
    of the marginal structured SVM paper, and lemma 2.
    """
    outputs = [v for v in range(len(cards)) if labels[v] >= 0]
    order = outputs + [v for v in range(len(cards)) if labels[v] < 0]
    rows = int(np.prod([cards[v] for v in outputs]))
    places = np.arange(len(scores)).reshape(cards).transpose(order).reshape(rows, -1)
    table = scores[places]
    inner = _soft_max_rows(table, eps_h)
    given = list(assignments([cards[v] for v in outputs]))
    true = given.index(tuple(int(labels[v]) for v in outputs))
    dear = inner.copy()
    if costs is not None:
        dear += [sum(costs[v, s] for v, s in zip(outputs, y, strict=True)) for y in given]
    free = soft_max(dear, eps_y)
    within = _gradient(table, inner, eps_h)
    between = _gradient(dear[None], [free], eps_y)[0]
    between[true] -= 1.0
    slope = np.zeros(len(scores))
    slope[places] = between[:, None] * within
    return free - inner[true], slope


def annealed_best(scores, cards, labels, eps_h):
    """Best outputs with hidden variables summed out at a temperature; hidden ones keep -1."""
    outputs = [v for v in range(len(cards)) if labels[v] >= 0]
    order = outputs + [v for v in range(len(cards)) if labels[v] < 0]
    rows = int(np.prod([cards[v] for v in outputs]))
    inner = _soft_max_rows(scores.reshape(cards).transpose(order).reshape(rows, -1), eps_h)
    best = list(labels)
    states = np.unravel_index(int(inner.argmax()), [cards[v] for v in outputs]) if outputs else ()
    for v, state in zip(outputs, states, strict=True):
        best[v] = int(state)
    return best


def cost_rows(labels, matrix, mean=False):
    """What every state of every variable of one example costs."""
    known = max(sum(label >= 0 for label in labels), 1)
    rows = [matrix[label] if label >= 0 else np.zeros(len(matrix)) for label in labels]
    return np.array(rows) / (known if mean else 1)


def hinge_field(rng, hard=True, powers=(1, 2)):
    """A random small hinge-loss field and weights; its hard forms hold at some point."""
    n, m, n_groups = rng.integers(1, 9), rng.integers(1, 16), rng.integers(1, 5)
    point = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 2, n).astype(float)
    offsets, variables, coefficients, constants, kinds = [0], [], [], [], []
    for _ in range(m):
        size = rng.integers(0 if rng.random() < 0.1 else 1, min(n, 4) + 1)
        scope = rng.choice(n, size, replace=False)
        row = rng.choice([-1.0, 1.0], size) if rng.random() < 0.7 else rng.normal(size=size)
        kind = int(rng.choice([0, 0, 0, 0, 1, 2])) if hard else 0
        constant = rng.normal() if rng.random() < 0.5 else float(rng.integers(-2, 2))
        if kind:
            slack = rng.random() if kind == 1 and rng.random() < 0.6 else 0.0
            constant = -float(row @ point[scope]) - slack
        variables.extend(scope.tolist())
        coefficients.extend(row.tolist())
        offsets.append(len(variables))
        constants.append(constant)
        kinds.append(kind)
    field = {
        "offsets": offsets,
        "variables": np.array(variables, int),
        "coefficients": np.array(coefficients, float),
        "constants": constants,
        "kinds": kinds,
        "powers": rng.choice(powers, m),
        "groups": rng.integers(0, n_groups, m),
        "n_variables": int(n),
        "n_groups": int(n_groups),
    }
    weights = rng.exponential(size=n_groups) * rng.choice([0, 1, 1, 1, 10.0], n_groups)
    return field, weights * rng.choice([1e-2, 1, 100])


def hinge_forms(field):
    """The forms of a field as dictionaries from variable to coefficient."""
    for i in range(len(field["constants"])):
        entries = range(field["offsets"][i], field["offsets"][i + 1])
        yield {int(field["variables"][e]): field["coefficients"][e] for e in entries}


def hinge_values(field, y):
    """Value of every form at a point."""
    values = [sum(a * y[j] for j, a in form.items()) for form in hinge_forms(field)]
    return np.array(values) + field["constants"]


def hinge_admm(field, weights, step, relaxation, stiffness, n_steps, fixed):
    """Consensus ADMM with a copy and a multiplier of its own for every variable in every form.

    Returns the consensus and the sum of the hinges of every group at the copies.
    """
    y = np.full(field["n_variables"], 0.5)
    for j, value in fixed.items():
        y[j] = value
    forms = [{j: a for j, a in form.items() if j not in fixed} for form in hinge_forms(field)]
    given = hinge_values(field, np.where(np.isin(np.arange(len(y)), list(fixed)), y, 0.0))
    steps = [step * (stiffness if kind else 1.0) for kind in field["kinds"]]
    alphas = [dict.fromkeys(form, 0.0) for form in forms]
    copies = [{j: y[j] for j in form} for form in forms]
    for _ in range(n_steps):
        hinges = np.zeros(field["n_groups"])
        for i, form in enumerate(forms):
            group = field["groups"][i]
            eta = steps[i]
            base = {j: y[j] - alphas[i][j] / eta for j in form}
            value = given[i] + sum(a * base[j] for j, a in form.items())
            length = sum(a * a for a in form.values()) / eta
            along = _hinge_move(field, i, weights[group], value, length)
            copies[i] = {j: base[j] - along * a / eta for j, a in form.items()}
            if field["kinds"][i] == 0:
                hinges[group] += max(value - along * length, 0.0) ** field["powers"][i]
        mixed = [
            {j: relaxation * v + (1 - relaxation) * y[j] for j, v in copy.items()}
            for copy in copies
        ]
        new = y.copy()
        for j in range(len(y)):
            who = [i for i, form in enumerate(forms) if j in form]
            if who:
                total = sum(steps[i] * mixed[i][j] + alphas[i][j] for i in who)
                new[j] = min(max(total / sum(steps[i] for i in who), 0.0), 1.0)
        for i, form in enumerate(forms):
            for j in form:
                alphas[i][j] += steps[i] * (mixed[i][j] - new[j])
        y = new
    return y, hinges


def _hinge_move(field, i, weight, value, length):
    """How far to go along a form: the best of its candidates, by value."""
    kind, power = field["kinds"][i], field["powers"][i]
    if kind:
        holds = length == 0 or (kind == 1 and value <= 0)
        return 0.0 if holds else value / length
    slide = weight if power == 1 else 2 * weight * value / (1 + 2 * weight * length)
    candidates = [0.0, slide] + ([value / length] if length > 0 else [])

    def cost(t):
        return weight * max(value - t * length, 0.0) ** power + 0.5 * t * t * length

    return min(candidates, key=cost)


# ---- sequences ---------------------------------------------------------------------------


def chain_loss(scores, edges, labels, eps, costs=0.0):
    """Loss of one sequence by all its labellings, and its gradient by nodes and by transitions."""
    nodes = np.asarray(scores + costs)
    every = list(assignments([scores.shape[1]] * len(labels)))
    totals = np.array([path_score(nodes, edges, path) for path in every])
    value = soft_max(totals, eps)
    shares = _gradient(totals[None], [value], eps)[0]
    shares[every.index(tuple(int(s) for s in labels))] -= 1.0
    by_node, by_step = np.zeros(scores.shape), np.zeros(edges.shape)
    for share, path in zip(shares, every, strict=True):
        by_node[np.arange(len(path)), list(path)] += share
        for step in itertools.pairwise(path):
            by_step[step] += share
    return value - path_score(scores, edges, labels), by_node, by_step


def path_score(nodes, edges, path):
    """Sum of the potentials along a path."""
    total = sum(nodes[t, s] for t, s in enumerate(path))
    return total + sum(edges[step] for step in itertools.pairwise(path))


def soft_threshold(values, amount):
    """Pull every number towards 0, no further than 0."""
    return np.sign(values) * np.maximum(np.abs(values) - amount, 0.0)


def step_length(rule, t):
    """Length of step `t`, from 1 on, of a rule of `kernels.chain.online` that has one for all."""
    lengths = {
        0: rule.step,
        1: rule.step / (1.0 + rule.step * rule.ridge * (t - 1.0)),
        2: rule.step / np.sqrt(t),
        3: 1.0 / (rule.ridge * t) if rule.ridge else np.inf,
    }
    return lengths[rule.kind]


def online_steps(gradient, order, weights, rule):
    """Stochastic gradient steps on all weights at once; the last weights, and their average."""
    average = np.zeros(len(weights))
    for t, c in enumerate(order, start=1):
        length = step_length(rule, t)
        weights = weights - length * (rule.ridge * weights + gradient(c, weights))
        weights = soft_threshold(weights, length * rule.lasso)
        size = np.linalg.norm(weights)
        weights = weights * min(1.0, rule.radius / size if size else 1.0)
        portion = (rule.power + 1.0) / (t + rule.power)
        if rule.begin >= 0.0:
            portion = 1.0 / max(t - rule.begin, 1.0)
        average = (1.0 - portion) * average + portion * weights
    return weights, average


def adagrad_steps(gradient, order, weights, rule, blocks, met):
    """AdaGrad; what a block of weights misses while its feature is not met comes as one pull.

    `blocks` are the weights of every feature, and ``met(c)`` says which features occur; weights in
    no block take part in every step.
    """
    weights, squares = weights.copy(), np.zeros(len(weights))
    last = dict.fromkeys(range(len(blocks)), 0)

    def pull(which, times):
        step = times * rule.step / (np.sqrt(squares[which]) + 1e-12)
        pulled = soft_threshold(weights[which], step * rule.lasso)
        weights[which] = pulled / (1.0 + step * rule.ridge)

    always = np.setdiff1d(np.arange(len(weights)), np.concatenate(blocks))
    for t, c in enumerate(order, start=1):
        for d in met(c):
            pull(blocks[d], t - 1 - last[d])
            last[d] = t
        slopes = gradient(c, weights)
        for which in [always, *(blocks[d] for d in met(c))]:
            squares[which] += slopes[which] ** 2
            weights[which] -= rule.step / (np.sqrt(squares[which]) + 1e-12) * slopes[which]
            pull(which, 1)
    for d, block in enumerate(blocks):
        pull(block, len(order) - last[d])
    return weights, squares


def frank_wolfe_steps(sequences, order, n_weights):
    """Block-coordinate Frank-Wolfe with a list of labellings and their shares for every sequence.

    A sequence has a function from weights to its best labelling, costs included, and one from a
    labelling to its difference of features and its cost, both times the weight of its loss.
    Lacoste-Julien et al. (2013), algorithm 4; returns weights, costs and shares.
    """
    weights = np.zeros(n_weights)
    own = [np.zeros(n_weights) for _ in sequences]
    costs = np.zeros(len(sequences))
    shares = [{true: 1.0} for _, _, true in sequences]
    for c in order:
        best, compare, _ = sequences[c]
        path = best(weights)
        towards, cost = compare(path)
        apart = own[c] - towards
        gain = apart @ weights - costs[c] + cost
        square = apart @ apart
        length = float(gain > 0.0) if gain >= square else max(gain / square, 0.0)
        weights = weights - length * apart
        own[c] = own[c] - length * apart
        costs[c] += length * (cost - costs[c])
        shares[c] = {y: (1.0 - length) * share for y, share in shares[c].items()}
        shares[c][path] = shares[c].get(path, 0.0) + length
    return weights, costs, shares


def pairwise_step(flow, best, score, limit):
    """Move share from the worst path in use to the best one; the new flow and the length.

    `flow` has the share of every link (position, state before, state), ``score(path)`` is what
    a path is worth, and ``limit(worst)`` how far it is best to go. Garber and Meshi (2016),
    algorithm 3, for paths.
    """

    def links(path):
        return {(t, path[t - 1] if t else -1, s) for t, s in enumerate(path)}

    states = range(max(s for _, _, s in flow) + 1)
    every = itertools.product(states, repeat=len(best))
    used = [path for path in every if all(flow.get(link, 0.0) > 0.0 for link in links(path))]
    worst = min(used, key=score)
    leaving, coming = links(worst) - links(best), links(best) - links(worst)
    most = min((flow[link] for link in leaving), default=0.0)
    length = min(most, limit(worst))
    flow = {link: share - length * (link in leaving) for link, share in flow.items()}
    for link in coming:
        flow[link] = flow.get(link, 0.0) + length
    return {link: share for link, share in flow.items() if share > 1e-13}, length


def stretch_steps(flow, weights, pairwise, reach, change):
    """Move shares among the links of a flow, one stretch after the other; flow, weights, rise.

    `flow` has the share of every link (position, state before, state), and ``change(moves)`` is
    what moves of links do to weights and to the cost. Between positions with one state only, all
    paths are tried.
    """
    flow = dict(flow)
    n = 1 + max(t for t, _, _ in flow)
    free = [len({s for u, _, s in flow if u == t}) > 1 for t in range(n)] + [False]
    cost = 0.0
    for a in (t for t in range(n) if free[t] and not (t and free[t - 1])):
        b = next(t for t in range(a, n + 1) if not free[t])
        places = [sorted(link for link in flow if link[0] == t) for t in range(a, min(b + 1, n))]
        paths = [
            path
            for path in itertools.product(*places)
            if all(one[2] == two[1] for one, two in itertools.pairwise(path))
        ]

        def score(path, weights=weights):
            moved, cost = change(dict.fromkeys(path, 1.0))
            return cost + moved @ weights

        used = [path for path in paths if min(flow[link] for link in path) > 0.0]
        left = dict.fromkeys(min(used, key=score), 1.0)
        if not pairwise:
            left = {link: flow[link] for place in places for link in place}
        moves = {link: left.get(link, 0.0) for place in places for link in place}
        for link in max(paths, key=score):
            moves[link] -= 1.0
        moved, saved = change(moves)
        rise, square = -saved - moved @ weights, moved @ moved
        if rise <= 1e-12:
            continue
        most = min(flow[link] / x for link, x in moves.items() if x > 0.0)
        length = min(most, reach * rise / square if square > 0.0 else most)
        flow.update({link: flow[link] - length * x for link, x in moves.items()})
        weights = weights + length * moved
        cost -= length * saved
    return flow, weights, cost
