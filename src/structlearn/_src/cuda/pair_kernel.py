"""The kernel of Triton for messages between pairs: see `pairwise`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

_ENTRIES = 2048  # of tables that one program holds: sixteen for each of its threads
NOTHING = tl.constexpr(float("-inf"))
TIE = tl.constexpr(1e-9)


@triton.jit
def _update_kernel(
    variables, offsets, places, backward, senders, tables_at, strides, weights, ratios, cards,
    starts, graphs, active, tables, messages, single, single_barred, finite,
    barred, change, count, damping, weight, ratio,
    BLOCK: tl.constexpr, STATES: tl.constexpr, WIDTH: tl.constexpr, MOST: tl.constexpr,
    EVEN: tl.constexpr, COMMON: tl.constexpr, COLD: tl.constexpr, MIXED: tl.constexpr,
    BARRING: tl.constexpr,
):  # fmt: skip
    """All messages to a block of variables of one colour, and their beliefs."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.arange(0, WIDTH)
    inside = lane < count
    v = tl.load(variables + lane, mask=inside, other=0)
    inside = inside & (tl.load(active + tl.load(graphs + v)) != 0)
    first = tl.load(offsets + lane, mask=inside, other=0)
    last = tl.load(offsets + lane + 1, mask=inside, other=0)
    size = tl.load(cards + v)
    here = tl.load(starts + v)[:, None] + state[None, :]
    received = inside[:, None] & (state[None, :] < (STATES if EVEN else size[:, None]))
    belief = tl.load(single + here, mask=received, other=0.0)
    blocked = tl.zeros((BLOCK, WIDTH), tl.int32)
    if BARRING:
        blocked = tl.load(single_barred + here, mask=received, other=0)
    worst = tl.zeros((BLOCK,), tl.float64)
    for k in range(MOST):
        at = first + k
        there = at < last
        u = tl.load(senders + at, mask=there, other=0)
        many = tl.load(cards + u)
        sent = there[:, None] & (state[None, :] < (STATES if EVEN else many[:, None]))
        w = tl.zeros((BLOCK,), tl.float64) + weight
        r = tl.zeros((BLOCK,), tl.float64) + ratio
        if not COMMON:
            w = tl.load(weights + at, mask=there, other=1.0)
            r = tl.load(ratios + at, mask=there, other=1.0)
        # What the sender tells the factor.
        back = tl.load(backward + at, mask=there, other=0)[:, None] + state[None, :]
        message = tl.load(messages + back, mask=sent, other=0.0)
        full_at = tl.load(starts + u)[:, None] + state[None, :]
        full = tl.load(finite + full_at, mask=sent, other=0.0)
        if BARRING:
            out = message == NOTHING
            times = tl.load(barred + full_at, mask=sent, other=0)
            told = r[:, None] * full - tl.where(out, 0.0, message)
            told = tl.where(times > out.to(tl.int32), NOTHING, told)
            full = tl.where(times > 0, NOTHING, full)
        else:
            told = r[:, None] * full - message
        if MIXED:
            best = tl.max(tl.where(sent, full, NOTHING), axis=1)
            near = full >= (best - TIE * (1.0 + tl.abs(best)))[:, None]
            only = tl.where(near & (message > NOTHING), -message, NOTHING)
            told = tl.where((r == float("inf"))[:, None], only, told)
        # The table, senders along the second axis.
        base = tl.load(tables_at + at, mask=there, other=0)
        up = tl.load(strides + 2 * at, mask=there, other=0)
        across = tl.load(strides + 2 * at + 1, mask=there, other=0)
        entry = base[:, None] + up[:, None] * state[None, :]
        entries = entry[:, :, None] + (across[:, None] * state[None, :])[:, None, :]
        theta = tl.load(
            tables + entries, mask=sent[:, :, None] & received[:, None, :], other=NOTHING
        )
        theta += told[:, :, None]
        new = tl.max(theta, axis=1)
        if not COLD:
            safe = tl.where(w > 0.0, w, 1.0)
            shift = tl.where(new == NOTHING, 0.0, new)
            total = tl.sum(tl.exp((theta - shift[:, None, :]) / safe[:, None, None]), axis=1)
            soft = tl.where((w > 0.0)[:, None], w[:, None] * tl.log(total), 0.0)
            new = tl.where(new == NOTHING, new, new + soft)
        keep = received & there[:, None]
        new = tl.where(keep, new, NOTHING)
        top = tl.max(new, axis=1)
        possible = top > NOTHING
        spot = tl.load(places + at, mask=there, other=0)[:, None] + state[None, :]
        old = tl.load(messages + spot, mask=keep, other=0.0)
        value = new - tl.where(possible, top, 0.0)[:, None]
        blend = value + damping * (old - value)
        value = tl.where((old > NOTHING) & (value > NOTHING), blend, value)
        value = tl.where(possible[:, None] & keep, value, old)
        moved = tl.where(value == old, 0.0, tl.minimum(tl.abs(value - old), 1e30))
        if not COLD:
            apart = tl.abs(tl.exp(value / safe[:, None]) - tl.exp(old / safe[:, None]))
            moved = tl.where((w > 0.0)[:, None], apart, moved)
        most = tl.max(tl.where(keep, moved, 0.0), axis=1)
        most = tl.where(possible, most, float("inf"))
        worst = tl.maximum(worst, tl.where(there & inside, most, 0.0))
        tl.store(messages + spot, value, mask=keep)
        if BARRING:
            belief += tl.where(value == NOTHING, 0.0, value)
            blocked += (value == NOTHING).to(tl.int32)
        else:
            belief += value
    tl.store(finite + here, belief, mask=received)
    if BARRING:
        tl.store(barred + here, blocked, mask=received)
    tl.store(change + v, worst, mask=inside)


def update(
    plan: Any, c: Any, tables: Tensor, messages: Tensor, single: Any, beliefs: Any,
    active: Tensor, damping: float, barring: bool, change: Tensor,
) -> None:  # fmt: skip
    """Update the messages to the variables of one colour."""
    width = triton.next_power_of_2(max(plan.states, 2))
    block = max(_ENTRIES // (width * width), 1)
    weight, ratio = plan.common or (1.0, 1.0)
    count = len(c.variables)
    _update_kernel[(triton.cdiv(count, block),)](
        c.variables, c.offsets, c.messages, c.backward, c.senders, c.tables, c.strides, c.weights,
        c.ratios, plan.cards, plan.starts, plan.graphs, active, tables, messages, single.finite,
        single.barred, beliefs.finite, beliefs.barred, change, count, damping, weight, ratio,
        BLOCK=block, STATES=plan.states, WIDTH=width, MOST=c.most, EVEN=plan.even,
        COMMON=plan.common is not None, COLD=plan.cold, MIXED=plan.mixed, BARRING=barring,
        num_warps=4,
    )  # fmt: skip
