"""Read answers off messages: beliefs, factor beliefs, the Bethe value, one assignment or draw.

All of these take messages in the log domain. `borders` and `order` are as in `sweep`.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.graph.message import START, outgoing, reduce, update_belief
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import take


@inner
def soften(values, start, stop, eps, out):
    """Turn log values at temperature `eps` into probabilities out[start:stop].

    Returns eps * log sum exp(values / eps). At temperature 0 all maximisers share the mass.
    """
    top = -np.inf
    for k in range(start, stop):
        top = max(top, values[k])
    if top == -np.inf:
        for k in range(start, stop):
            out[k] = 0.0
        return top
    total = 0.0
    for k in range(start, stop):
        gap = values[k] - top
        if eps > 0.0:
            out[k] = np.exp(gap / eps)
        else:
            out[k] = 1.0 if gap >= -1e-9 * (1.0 + abs(top)) else 0.0
        total += out[k]
    for k in range(start, stop):
        out[k] /= total
    return top + eps * np.log(total)


@inner
def read_beliefs(borders, net, state, eps, first, last, out, value):
    r"""Beliefs of all variables and, in `value`, their part of the Bethe value.

    .. math:: \sum_i \epsilon_i \log \sum_x \exp(B_i(x) / \epsilon_i)
    """
    for g in range(first, last):
        total = 0.0  # written at the end: other threads write beside it
        for v in range(borders[g, 0], borders[g + 1, 0]):
            start, stop = net.variables[v, 1], net.variables[v + 1, 1]
            update_belief(v, net, state)
            total += soften(state.beliefs, start, stop, eps[v], out)
        value[g] = total


@inner
def _normalised_outgoing(s, row, net, state, w, marginals, workspace):
    """What the variable of slot `s` tells its factor, w log tau - message, with its constant.

    Messages leave the constant open; the value needs it. It is read off where the marginal is
    largest: the smallest ones have lost their digits.
    """
    v, m = net.slots[s, 0], net.slots[s, 2]
    b = net.variables[v, 1]
    states = net.variables[v + 1, 1] - b
    outgoing(s, net, state, workspace.incoming, row, workspace.two)
    best = 0
    for x in range(1, states):
        if marginals[b + x] > marginals[b + best]:
            best = x
    message = state.messages[m + best]
    if marginals[b + best] > 0.0 and message > -np.inf:
        shift = w * np.log(marginals[b + best]) - message - workspace.incoming[row, best]
        for x in range(states):
            workspace.incoming[row, x] += shift


@inner
def _add_pair(start, net, state, workspace):
    """Log beliefs of a factor over two variables, without their constant, in workspace.one."""
    f = net.slots[start, 1]
    low = net.factors[f, 1]
    v = net.slots[start + 1, 0]
    states = net.variables[v + 1, 1] - net.variables[v, 1]
    for x in range((net.factors[f + 1, 1] - low) // states):
        for y in range(states):
            k = x * states + y
            log = state.tables[low + k] + workspace.incoming[1, y]
            workspace.one[k] = log + workspace.incoming[0, x]


@inner
def read_factors(borders, net, state, marginals, workspace, first, last, wanted, out, value):
    r"""Add the factors' part of the Bethe value, and write their beliefs if `wanted`.

    .. math:: \sum_f w_f \log \sum_{x_f} \prod_i \tau_i(x_i)
              \exp \frac{\theta_f(x_f) - \sum_i \lambda_{f i}(x_i)}{w_f}
    """
    for g in range(first, last):
        total = value[g]
        for f in range(borders[g, 2], borders[g + 1, 2]):
            start, stop = net.factors[f, 0], net.factors[f + 1, 0]
            low, high = net.factors[f, 1], net.factors[f + 1, 1]
            w = state.weights[f]
            if stop == start + 1:
                b = net.variables[net.slots[start, 0], 1]
                for k in range(low, high if wanted else low):
                    out[k] = marginals[b + k - low]
                continue
            for s in range(start, stop):
                _normalised_outgoing(s, s - start, net, state, w, marginals, workspace)
            pair = stop == start + 2  # most are, and need no divisions
            if pair:
                _add_pair(start, net, state, workspace)
            for k in range(high if pair else low, high):
                log = state.tables[k]
                rest = k - low
                for s in range(stop - 1, start - 1, -1):
                    v = net.slots[s, 0]
                    states = net.variables[v + 1, 1] - net.variables[v, 1]
                    log += workspace.incoming[s - start, rest % states]
                    rest //= states
                workspace.one[k - low] = log
            total += soften(workspace.one, START, high - low, w, workspace.two)
            for k in range(low, high if wanted else low):
                out[k] = workspace.two[k - low]
        value[g] = total


@inner
def read_parts(
    number, board, ranges, borders, net, state, eps, workspaces, variables, factors, wanted,
    marginals, out, value,
):  # fmt: skip
    """Read what `variables` and `factors` say, or one of them, in ranges that threads take."""
    workspace = own(*workspaces, number)
    r = take(board, 0)
    while r < ranges.size - 1:
        first, last = ranges[r], ranges[r + 1]
        if variables:
            read_beliefs(borders, net, state, eps, first, last, marginals, value)
        if factors:
            read_factors(borders, net, state, marginals, workspace, first, last, wanted, out, value)
        r = take(board, 0)


@lean
def read_in_threads(box, helpers, *given):
    """Run `read_parts` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(read_parts, given))
    read_parts(0, *given)
    withdraw(box, open_)


@inner
def choose(values, states, eps, uniform):
    """The best state, or at eps > 0 with uniform >= 0 a random one."""
    best = 0
    for x in range(1, states):
        if values[x] > values[best]:
            best = x
    if uniform < 0.0 or eps == 0.0 or values[best] == -np.inf:
        return best
    total = 0.0
    top = values[best]
    for x in range(states):
        total += np.exp((values[x] - top) / eps)
    left = uniform * total
    for x in range(states):
        left -= np.exp((values[x] - top) / eps)
        if left < 0.0:
            return x
    return best


@lean
def decode(net, state, eps, order, uniforms, workspace, scores, first, last, labels):
    """Give the variables of the blocks first..last-1 states, each given those before it.

    In a forest with parents first this is an exact maximiser, or with `uniforms` (one number
    in [0, 1) per variable, else -1) an exact draw. Elsewhere it is a rounding that, unlike the
    best state of every belief, keeps neighbours consistent. Labels are -1 to begin with, and
    beliefs those of the messages.
    """
    for k in range(order.block_offsets[first], order.block_offsets[last]):
        v = order.variables[k]
        states = net.variables[v + 1, 1] - net.variables[v, 1]
        for x in range(states):
            scores[x] = 0.0
        for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
            t = net.variable_slots[q]
            source = state.messages
            start = net.slots[t, 2]
            if _condition(t, net, state, labels, workspace):
                reduce(net.slots[t, 1], t, net, state, workspace)
                source = workspace.one
                start = 0
            for x in range(states):
                scores[x] += source[start + x]
        labels[v] = choose(scores, states, eps[v], uniforms[v])


@inner
def _condition(t, net, state, labels, workspace):
    """Fill workspace.incoming for slot `t` given the labels; False if they change nothing."""
    f = net.slots[t, 1]
    low, high = net.factors[f, 0], net.factors[f + 1, 0]
    known = False
    for s in range(low, high):
        known = known or (s != t and labels[net.slots[s, 0]] >= 0)
    for s in range(low, high if known else low):
        v = net.slots[s, 0]
        if labels[v] < 0:
            if s != t:
                outgoing(s, net, state, workspace.incoming, s - low, workspace.two)
            continue
        for x in range(net.variables[v + 1, 1] - net.variables[v, 1]):
            workspace.incoming[s - low, x] = 0.0 if x == labels[v] else -np.inf
    return known
