"""The kernel of Triton for messages between pairs: see `pairwise`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

ENTRIES = 1024  # of messages that one program holds: eight for each of its threads
NOTHING = tl.constexpr(float("-inf"))
TIE = tl.constexpr(1e-9)


@triton.jit
def _told(
    messages, finite, barred, back, full_at, i, sent, r, best, MIXED: tl.constexpr,
    BARRING: tl.constexpr,
):  # fmt: skip
    """What senders tell the factors about their state `i`."""
    message = tl.load(messages + back + i, mask=sent, other=0.0)
    full = tl.load(finite + full_at + i, mask=sent, other=0.0)
    told = r * full - message
    if BARRING:
        out = message == NOTHING
        times = tl.load(barred + full_at + i, mask=sent, other=0)
        told = tl.where(times > out.to(tl.int32), NOTHING, r * full - tl.where(out, 0.0, message))
        full = tl.where(times > 0, NOTHING, full)
    if MIXED:
        near = (full >= best - TIE * (1.0 + tl.abs(best))) & (message > NOTHING)
        told = tl.where(r == float("inf"), tl.where(near, -message, NOTHING), told)
    return tl.where(sent, told, NOTHING)


@triton.jit
def _best(finite, barred, full_at, many, there, STATES: tl.constexpr, BARRING: tl.constexpr):
    """Largest belief of senders."""
    best = tl.zeros_like(many).to(tl.float64) + NOTHING
    for i in range(STATES):
        sent = there & (i < many)
        full = tl.load(finite + full_at + i, mask=sent, other=NOTHING)
        if BARRING:
            times = tl.load(barred + full_at + i, mask=sent, other=0)
            full = tl.where(times > 0, NOTHING, full)
        best = tl.maximum(best, full)
    return best


@triton.jit
def _linear_message(
    tables, row, up, messages, finite, barred, back, full_at, there, many, keep, w, r, best,
    STATES: tl.constexpr, MIXED: tl.constexpr, BARRING: tl.constexpr,
):  # fmt: skip
    """New messages from exponentials of tables, and whether any state is possible."""
    top = w * 0.0 + NOTHING
    for i in range(STATES):
        sent = there & (i < many)
        told = _told(messages, finite, barred, back, full_at, i, sent, r, best, MIXED, BARRING)
        top = tl.maximum(top, told)
    top = tl.where(top == NOTHING, 0.0, top)
    total = tl.zeros_like(keep).to(tl.float64)
    for i in range(STATES):
        sent = there & (i < many)
        told = _told(messages, finite, barred, back, full_at, i, sent, r, best, MIXED, BARRING)
        place = row + (i * up)[:, None]
        table = tl.load(tables + place, mask=keep & sent[:, None], other=0.0)
        total += table * tl.exp((told - top) / w)[:, None]
    most = tl.max(tl.where(keep, total, 0.0), axis=1)
    possible = most > 0.0
    return w[:, None] * tl.log(total / tl.where(possible, most, 1.0)[:, None]), possible


@triton.jit
def _log_message(
    tables, row, up, messages, finite, barred, back, full_at, there, many, keep, w, r, best,
    STATES: tl.constexpr, MIXED: tl.constexpr, BARRING: tl.constexpr, COLD: tl.constexpr,
):  # fmt: skip
    """New messages from log potentials, and whether any state is possible."""
    new = tl.zeros_like(keep).to(tl.float64) + NOTHING
    for i in range(STATES):
        sent = there & (i < many)
        told = _told(messages, finite, barred, back, full_at, i, sent, r, best, MIXED, BARRING)
        place = row + (i * up)[:, None]
        table = tl.load(tables + place, mask=keep & sent[:, None], other=NOTHING)
        new = tl.maximum(new, table + told[:, None])
    if not COLD:
        safe = tl.where(w > 0.0, w, 1.0)[:, None]
        shift = tl.where(new == NOTHING, 0.0, new)
        total = tl.zeros_like(new)
        for i in range(STATES):
            sent = there & (i < many)
            told = _told(messages, finite, barred, back, full_at, i, sent, r, best, MIXED, BARRING)
            place = row + (i * up)[:, None]
            table = tl.load(tables + place, mask=keep & sent[:, None], other=NOTHING)
            total += tl.exp((table + told[:, None] - shift) / safe)
        warm = (new > NOTHING) & (w > 0.0)[:, None]
        new += tl.where(warm, w[:, None] * tl.log(tl.where(warm, total, 1.0)), 0.0)
    top = tl.max(tl.where(keep, new, NOTHING), axis=1)
    return new - tl.where(top > NOTHING, top, 0.0)[:, None], top > NOTHING


@triton.jit
def _message(
    tables, row, up, messages, finite, barred, back, full_at, there, many, keep, w, r, best,
    STATES: tl.constexpr, MIXED: tl.constexpr, BARRING: tl.constexpr, COLD: tl.constexpr,
    LINEAR: tl.constexpr,
):  # fmt: skip
    if LINEAR:
        value, possible = _linear_message(
            tables, row, up, messages, finite, barred, back, full_at, there, many, keep, w, r, best,
            STATES, MIXED, BARRING,
        )  # fmt: skip
    else:
        value, possible = _log_message(
            tables, row, up, messages, finite, barred, back, full_at, there, many, keep, w, r, best,
            STATES, MIXED, BARRING, COLD,
        )  # fmt: skip
    return value, possible


@triton.jit
def _distance(value, old, w, keep, COLD: tl.constexpr):
    """Largest change of messages, as in kernels.graph.message."""
    moved = tl.where(value == old, 0.0, tl.minimum(tl.abs(value - old), 1e30))
    if not COLD:
        safe = tl.where(w > 0.0, w, 1.0)[:, None]
        apart = tl.abs(tl.exp(value / safe) - tl.exp(old / safe))
        moved = tl.where((w > 0.0)[:, None], apart, moved)
    return tl.max(tl.where(keep, moved, 0.0), axis=1)


@triton.jit
def _update_kernel(
    variables, offsets, places, backward, senders, tables_at, strides, weights, ratios, cards,
    starts, graphs, active, tables, messages, single, single_barred, finite, barred, change, count,
    damping, weight, ratio,
    BLOCK: tl.constexpr, STATES: tl.constexpr, WIDTH: tl.constexpr, MOST: tl.constexpr,
    EVEN: tl.constexpr, COMMON: tl.constexpr, COLD: tl.constexpr, MIXED: tl.constexpr,
    BARRING: tl.constexpr, LINEAR: tl.constexpr,
):  # fmt: skip
    """All messages to a block of variables of one colour, and their beliefs."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.arange(0, WIDTH)[None, :]
    inside = lane < count
    v = tl.load(variables + lane, mask=inside, other=0)
    inside = inside & (tl.load(active + tl.load(graphs + v)) != 0)
    first = tl.load(offsets + lane, mask=inside, other=0)
    last = tl.load(offsets + lane + 1, mask=inside, other=0)
    size = tl.full((BLOCK,), STATES, tl.int32) if EVEN else tl.load(cards + v).to(tl.int32)
    here = tl.load(starts + v)[:, None] + state
    received = inside[:, None] & (state < size[:, None])
    belief = tl.load(single + here, mask=received, other=0.0)
    blocked = tl.zeros((BLOCK, WIDTH), tl.int32)
    if BARRING:
        blocked = tl.load(single_barred + here, mask=received, other=0)
    worst = tl.zeros((BLOCK,), tl.float64)
    for k in range(MOST):
        at = first + k
        there = at < last
        u = tl.load(senders + at, mask=there, other=0)
        many = tl.full((BLOCK,), STATES, tl.int32) if EVEN else tl.load(cards + u).to(tl.int32)
        w = tl.zeros((BLOCK,), tl.float64) + weight
        r = tl.zeros((BLOCK,), tl.float64) + ratio
        if not COMMON:
            w = tl.load(weights + at, mask=there, other=1.0)
            r = tl.load(ratios + at, mask=there, other=1.0)
        back = tl.load(backward + at, mask=there, other=0)
        full_at = tl.load(starts + u)
        best = tl.zeros((BLOCK,), tl.float64)
        if MIXED:
            best = _best(finite, barred, full_at, many, there, STATES, BARRING)
        up = tl.load(strides + 2 * at, mask=there, other=0)
        across = tl.load(strides + 2 * at + 1, mask=there, other=0)
        row = tl.load(tables_at + at, mask=there, other=0)[:, None] + across[:, None] * state
        keep = received & there[:, None]
        value, possible = _message(
            tables, row, up, messages, finite, barred, back, full_at, there, many, keep, w, r, best,
            STATES, MIXED, BARRING, COLD, LINEAR,
        )  # fmt: skip
        spot = tl.load(places + at, mask=there, other=0)[:, None] + state
        old = tl.load(messages + spot, mask=keep, other=0.0)
        blend = value + damping * (old - value)
        value = tl.where((old > NOTHING) & (value > NOTHING), blend, value)
        value = tl.where(possible[:, None] & keep, value, old)
        far = tl.where(possible, _distance(value, old, w, keep, COLD), float("inf"))
        worst = tl.maximum(worst, tl.where(there & inside, far, 0.0))
        tl.store(messages + spot, value, mask=keep)
        belief += tl.where(value == NOTHING, 0.0, value)
        blocked += (value == NOTHING).to(tl.int32)
    tl.store(finite + here, belief, mask=received)
    if BARRING:
        tl.store(barred + here, blocked, mask=received)
    tl.store(change + v, worst, mask=inside)


def update(
    plan: Any, c: Any, tables: Any, messages: Tensor, single: Any, beliefs: Any, active: Tensor,
    damping: float, change: Tensor,
) -> None:  # fmt: skip
    """Update the messages to the variables of one colour."""
    width = triton.next_power_of_2(max(plan.states, 2))
    block = max(ENTRIES // width, 1)
    weight, ratio = plan.common or (1.0, 1.0)
    count = len(c.variables)
    _update_kernel[(triton.cdiv(count, block),)](
        c.variables, c.offsets, c.messages, c.backward, c.senders, c.tables, c.strides, c.weights,
        c.ratios, plan.cards, plan.starts, plan.graphs, active, tables.chosen, messages,
        single.finite, single.barred, beliefs.finite, beliefs.barred, change, count, damping,
        weight, ratio,
        BLOCK=block, STATES=plan.states, WIDTH=width, MOST=c.most, EVEN=plan.even,
        COMMON=plan.common is not None, COLD=plan.cold, MIXED=plan.mixed, BARRING=tables.barring,
        LINEAR=tables.linear, num_warps=4,
    )  # fmt: skip
