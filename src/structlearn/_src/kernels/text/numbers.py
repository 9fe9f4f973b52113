"""Read numbers from text, and walk over the parts of a UAI file."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from structlearn._src.kernels.jit import kernel

#: What the walkers below found wrong; 0 is nothing.
ENDED, ARITY, VARIABLE, TWICE, SIZE, POTENTIAL = range(1, 7)

_MOST_DIGITS = 18  # of a mantissa in int64
_EXACT = 22  # float64 holds the powers of ten up to this one exactly
_FAR = 250  # beyond this power of ten, products could lose their low part
_POWERS = [Fraction(10) ** k for k in range(-_FAR, _FAR + 1)]
_HIGH = np.array([float(power) for power in _POWERS])
_LOW = np.array([float(power - Fraction(float(power))) for power in _POWERS])


@kernel
def _blank(byte):
    return byte == 32 or (byte >= 9 and byte <= 13)


@kernel
def _next(data, i):
    """Offset of the first token from `i` on, past blanks and comment lines; the end if none."""
    fresh = False  # only blanks since the last line began
    while i < data.size:
        byte = data[i]
        if byte == 10:
            fresh = True
        elif not _blank(byte):
            mark = byte == 99 and (i + 1 == data.size or _blank(data[i + 1]))  # "c "
            if not fresh or (byte != 35 and not mark):  # "#"
                break
            while i + 1 < data.size and data[i + 1] != 10:
                i += 1
        i += 1
    return i


@kernel
def locate(data, start, index):
    """Offset of the token with number `index`, counted from `start`."""
    i = _next(data, start)
    for _ in range(index):
        while i < data.size and not _blank(data[i]):
            i += 1
        i = _next(data, i)
    return i


@kernel
def _split(x):
    """Two halves of a float64, whose products with other halves are exact (Veltkamp)."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high


@kernel
def _scaled(mantissa, power):
    """Return the float64 nearest to ``mantissa * 10**power``, or NaN if that is not certain.

    Mantissa and power are sums of two float64, and so is their product (Dekker 1971). Its
    error is below 2**-102 of it, so the sum of both parts is rounded rightly unless a change
    of that size would change it.
    """
    a = np.float64(mantissa)
    if mantissa <= 2**53 and abs(power) <= _EXACT:
        if power < 0:
            return a / _HIGH[_FAR - power]
        return a * _HIGH[_FAR + power]
    if abs(power) > _FAR:
        return np.nan
    rest = np.float64(mantissa - np.int64(a))
    b = _HIGH[_FAR + power]
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    product = a * b
    low = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    low += a * _LOW[_FAR + power] + rest * b
    total = product + low
    low -= total - product
    doubt = product * 2.0**-100
    if total + (low + doubt) != total or total + (low - doubt) != total:
        return np.nan
    return total


@kernel
def numbers(data, start, values, count, slow):
    """Parse decimal numbers from byte `start` on into ``values[count:]``.

    The few numbers that need more than two float64 to get right are noted in rows (number,
    first byte, end) of `slow`; the kernel returns when that is full. Returns where it stopped,
    the new count, the rows of `slow` in use, and whether all was well; if not, it stopped at
    the token that is no number.
    """
    n_slow = 0
    i = _next(data, start)
    while i < data.size and n_slow < len(slow):
        begin = i
        if data[i] == 45 or data[i] == 43:  # "-", "+"
            i += 1
        mantissa = 0
        digits = 0
        n_digits = 0  # from the first that is not zero
        power = 0
        point = 0
        while i < data.size:
            digit = np.int64(data[i]) - 48
            if digit >= 0 and digit <= 9:
                mantissa = 10 * mantissa + digit
                n_digits += mantissa != 0
                digits += 1
                power -= point
            elif digit == -2 and point == 0:
                point = 1
            else:
                break
            i += 1
        fine = digits > 0
        if fine and i < data.size and (data[i] == 69 or data[i] == 101):  # "E", "e"
            i += 1
            below = i < data.size and data[i] == 45
            if below or (i < data.size and data[i] == 43):
                i += 1
            exponent = 0
            digits = 0
            while i < data.size and data[i] >= 48 and data[i] <= 57:
                exponent = min(10 * exponent + np.int64(data[i]) - 48, 1000000)
                digits += 1
                i += 1
            fine = digits > 0
            power += -exponent if below else exponent
        if not fine or (i < data.size and not _blank(data[i])):
            return begin, count, n_slow, False
        value = np.nan if n_digits > _MOST_DIGITS else 0.0
        if mantissa != 0 and n_digits <= _MOST_DIGITS:
            value = _scaled(mantissa, power)
        if np.isnan(value):
            slow[n_slow, 0] = count
            slow[n_slow, 1] = begin
            slow[n_slow, 2] = i
            n_slow += 1
        values[count] = -value if data[begin] == 45 else value
        count += 1
        i = _next(data, i)
    return i, count, n_slow, True


@kernel
def scopes(values, start, n_variables, starts):
    """Find where the scope of every factor starts, from position `start` on, and check it.

    Returns what is wrong, in which factor, and the position reached.
    """
    stamp = np.full(n_variables, -1)
    at = start
    for f in range(starts.size - 1):
        if at >= values.size:
            return ENDED, f, at
        arity = values[at]
        if arity < 0 or arity != np.floor(arity):
            return ARITY, f, at
        starts[f] = at
        if arity > values.size - at - 1:
            return ENDED, f, values.size
        for s in range(at + 1, at + 1 + np.int64(arity)):
            v = values[s]
            if not (v >= 0 and v < n_variables and v == np.floor(v)):
                return VARIABLE, f, s
            if stamp[np.int64(v)] == f:
                return TWICE, f, s
            stamp[np.int64(v)] = f
        at += 1 + np.int64(arity)
    starts[-1] = at
    return 0, starts.size - 1, at


@kernel
def tables(values, start, cards, scope_offsets, scopes, sizes):
    """Check every table from position `start` on and move its entries to the front of `values`.

    Returns what is wrong, in which factor, and the position reached.
    """
    at = start
    out = 0
    for f in range(sizes.size):
        if at >= values.size:
            return ENDED, f, at
        size = 1.0  # a float cannot wrap around
        for s in range(scope_offsets[f], scope_offsets[f + 1]):
            size *= cards[scopes[s]]
        if values[at] != size:
            return SIZE, f, at
        if size > values.size - at - 1:
            return ENDED, f, values.size
        sizes[f] = np.int64(size)
        for k in range(at + 1, at + 1 + sizes[f]):
            if not (values[k] >= 0 and values[k] < np.inf):
                return POTENTIAL, f, k
            values[out] = values[k]
            out += 1
        at += 1 + sizes[f]
    return 0, sizes.size, at
