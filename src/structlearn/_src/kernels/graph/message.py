r"""The one message update, with a temperature per variable.

With the weight :math:`w_f` of a factor, the temperature :math:`\epsilon_i` of a variable and
their ratio :math:`r = w_f / \epsilon_i`, the update

.. math:: B_i = \sum_{f \ni i} \lambda_{f i}, \qquad
          n_{i f} = r B_i - \lambda_{f i}, \qquad
          \lambda_{f j}(x_j) = w_f \log \sum_{x_{f \setminus j}}
              \exp \frac{\theta_f(x_f) + \sum_{i \ne j} n_{i f}(x_i)}{w_f}

states where the Bethe functional
:math:`\langle\theta,\tau\rangle + \sum_i \epsilon_i H_i - \sum_f w_f I_f` is stationary. The
ratio is 1 for sum-product (all temperatures 1) and max-product (all 0), the edge appearance
probability for tree-reweighted messages, and infinite from a max node to a factor that sums:
there :math:`n_{if}` keeps only the states that maximise the sender's full belief, which is the
mixed-product rule of Liu and Ihler (2013).

Messages are kept either *linear*, as :math:`\exp(\lambda / w)`, where an update is a sum of
products, or in the log domain, which also serves temperature 0 and extreme potentials.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inline, inner

_TINY = 1e-140  # below this a linear message is not divided out of a belief but left out
_TIE = 1e-9  # relative: closer states share the maximum, as rounding may order them either way
_WIDE = 12  # states from which a table is better read along its rows
# Plain numbers as arguments would have a function compiled anew for each of them.
_NOBODY = np.int64(-1)
START = np.int64(0)
_ONE = np.int64(1)


class Net(NamedTuple):
    """A wiring packed so that one message touches few cache lines."""

    slots: np.ndarray  #: (slots, 4) variable, factor, where its message begins, its turns
    variables: np.ndarray  #: (variables + 1, 2) where its slots, its belief begin
    factors: np.ndarray  #: (factors + 1, 2) where its slots, its table begin
    variable_slots: np.ndarray  #: slots of every variable


class MessageState(NamedTuple):
    """Everything an update reads and writes, beside the net."""

    tables: np.ndarray  #: potentials; linear: exp(potentials / weight), largest entry 1
    weights: np.ndarray  #: temperature of every factor
    ratios: np.ndarray  #: weight / temperature of the variable, for every slot
    messages: np.ndarray  #: factor to variable, one block per slot, largest entry 1 (log: 0)
    raised: np.ndarray  #: linear ones to the power of their ratio; empty if all ratios are 1
    fresh: np.ndarray  #: messages in waiting, for schedules that need them
    beliefs: np.ndarray  #: combined messages of every variable
    linear: bool
    damping: float


class MessageWorkspace(NamedTuple):
    """Scratch space of one worker."""

    incoming: np.ndarray  #: (largest arity, most states)
    one: np.ndarray  #: largest table, or most states if that is more
    two: np.ndarray


@inline
def combine(v, skip, net, state, out, start):
    """Belief of `v` from the messages of all its slots but `skip`, into out[start:]."""
    states = net.variables[v + 1, 1] - net.variables[v, 1]
    for x in range(states):
        out[start + x] = 1.0 if state.linear else 0.0
    for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
        s = net.variable_slots[q]
        m = net.slots[s, 2]
        if s == skip:
            continue
        if not state.linear:
            for x in range(states):
                out[start + x] += state.messages[m + x]
        elif state.ratios[s] == 1.0:
            for x in range(states):
                out[start + x] *= state.messages[m + x]
        else:
            for x in range(states):
                out[start + x] *= state.raised[m + x]
        if state.linear and q % 4 == 3:  # keep clear of underflow
            top = 0.0
            for x in range(states):
                top = max(top, out[start + x])
            if top > 0.0:
                for x in range(states):
                    out[start + x] /= top


@inline
def update_belief(v, net, state):
    """Combine all messages to `v` in state.beliefs."""
    combine(v, _NOBODY, net, state, state.beliefs, net.variables[v, 1])


@inline
def outgoing(s, net, state, out, row, spare):
    """What the variable of slot `s` tells its factor, into out[row]."""
    v, m = net.slots[s, 0], net.slots[s, 2]
    b = net.variables[v, 1]
    states = net.variables[v + 1, 1] - b
    r = state.ratios[s]
    least, top = np.inf, -np.inf
    for x in range(states):
        least = min(least, state.messages[m + x])
        top = max(top, state.beliefs[b + x])
    ruled_out = least < _TINY if state.linear else least == -np.inf
    if ruled_out:
        combine(v, s, net, state, spare, START)
    top -= _TIE * (1.0 + abs(top))
    for x in range(states):
        full = state.beliefs[b + x]
        message = state.messages[m + x]
        if state.linear:
            if ruled_out and message < _TINY:
                # Unless r = 1 a state that this factor rules out stays out.
                out[row, x] = spare[x] if r == 1.0 else 0.0
            else:
                out[row, x] = full / message
        elif r == np.inf:
            out[row, x] = -message if full >= top and message > -np.inf else -np.inf
        elif ruled_out and message == -np.inf:
            out[row, x] = r * spare[x] if spare[x] > -np.inf else -np.inf
        else:
            out[row, x] = r * full - message if full > -np.inf else -np.inf


@inline
def contract(source, base, before, states, after, incoming, row, eps, linear, out):
    """Reduce the middle axis of source[base:], seen as (before, states, after)."""
    if linear and after >= _WIDE:
        for p in range(before):
            o = p * after
            for q in range(after):
                out[o + q] = 0.0
            for x in range(states):
                c = incoming[row, x]
                k = base + (p * states + x) * after
                for q in range(after):
                    out[o + q] += c * source[k + q]
        return
    for p in range(before):
        for q in range(after):
            start = base + p * states * after + q
            if linear:
                total = 0.0
                k = start
                for x in range(states):
                    total += incoming[row, x] * source[k]
                    k += after
                out[p * after + q] = total
                continue
            top = -np.inf
            k = start
            for x in range(states):
                top = max(top, source[k] + incoming[row, x])
                k += after
            if eps > 0.0 and top > -np.inf:
                total = 0.0
                for x in range(states):
                    total += np.exp((source[start + x * after] + incoming[row, x] - top) / eps)
                top += eps * np.log(total)
            out[p * after + q] = top


@inner
def reduce(f, keep, net, state, workspace):
    """Reduce every axis of factor `f` but that of slot `keep`; the result is left in workspace.one.

    Axes go one after the other from the last, so that arity 2 is a single pass over the table.
    `keep` = -1 reduces all. The factor must have another slot than `keep`.
    """
    low, high = net.factors[f, 0], net.factors[f + 1, 0]
    base = net.factors[f, 1]
    size = net.factors[f + 1, 1] - base
    source, out, other = state.tables, workspace.one, workspace.two
    if (high - low - (keep >= 0)) % 2 == 0:
        out, other = other, out  # the last of several passes must end in workspace.one
    after = _ONE
    for s in range(high - 1, low - 1, -1):
        v = net.slots[s, 0]
        states = net.variables[v + 1, 1] - net.variables[v, 1]
        if s == keep:
            after = states
            continue
        size //= states
        contract(
            source, base, size // after, states, after, workspace.incoming, s - low,
            state.weights[f], state.linear, out,
        )  # fmt: skip
        source, out, other = out, other, out
        base = 0


@inline
def _reduce_pair(t, s, states, net, state, workspace):
    """As `outgoing` from the only other slot `s` and `reduce`, in one pass over a linear table."""
    u, m = net.slots[s, 0], net.slots[s, 2]
    base = net.factors[net.slots[t, 1], 1]
    b = net.variables[u, 1]
    others = net.variables[u + 1, 1] - b
    step, across = (others, _ONE) if t < s else (_ONE, states)
    for x in range(others):
        if state.messages[m + x] < _TINY:
            row = s - min(s, t)
            outgoing(s, net, state, workspace.incoming, row, workspace.two)
            reduce(net.slots[t, 1], t, net, state, workspace)
            return
    new = workspace.one
    for y in range(states):
        new[y] = 0.0
    for x in range(others):
        told = state.beliefs[b + x] / state.messages[m + x]
        k = base + x * across
        for y in range(states):
            new[y] += told * state.tables[k]
            k += step


@inline
def update(t, net, state, workspace, out):
    """Write the new message of slot `t` to its place in `out`.

    Returns its distance from the stored message: infinite if the incoming messages leave no
    state possible, and then the stored message is kept.
    """
    v, f, m = net.slots[t, 0], net.slots[t, 1], net.slots[t, 2]
    states = net.variables[v + 1, 1] - net.variables[v, 1]
    low, high = net.factors[f, 0], net.factors[f + 1, 0]
    if state.linear and high == low + 2 and states < _WIDE:
        _reduce_pair(t, low + high - 1 - t, states, net, state, workspace)
    else:
        for s in range(low, high):
            if s != t:
                outgoing(s, net, state, workspace.incoming, s - low, workspace.two)
        reduce(f, t, net, state, workspace)
    new = workspace.one
    w = state.weights[f]
    damping = state.damping
    top = new[0]
    for x in range(1, states):
        top = max(top, new[x])
    if not top > (0.0 if state.linear else -np.inf):
        for k in range(m, m + states):
            out[k] = state.messages[k]
        return np.inf
    change = 0.0
    if state.linear:
        scale = (1.0 - damping) / top
        if damping > 0.0:  # how much of the old message stays must not depend on its scale
            peak = 0.0
            for x in range(states):
                peak = max(peak, new[x] * scale + damping * state.messages[m + x])
            scale /= peak
            damping /= peak
        for x in range(states):
            old = state.messages[m + x]
            value = new[x] * scale + damping * old
            change = max(change, abs(value - old))
            out[m + x] = value
        return change
    for x in range(states):
        old = state.messages[m + x]
        value = new[x] - top
        if damping > 0.0 and old > -np.inf and value > -np.inf:
            value += damping * (old - value)
        if w > 0.0:
            change = max(change, abs(np.exp(value / w) - np.exp(old / w)))
        elif value != old:
            change = max(change, min(abs(value - old), 1e30))
        out[m + x] = value
    return change
