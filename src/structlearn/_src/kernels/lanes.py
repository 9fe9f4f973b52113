"""Eight numbers at a time: what Numba makes no vector instructions of, as its loops are too short.

Rows of `LANES` numbers lie one after the other: those of eight positions, a row for each feature.
Sums are in the same order for every lane, and in that of `density.combine`, whatever the machine:
vectors of eight that it does not have become shorter ones.
"""

from __future__ import annotations

from typing import Any

from structlearn._src.kernels.jit import intrinsic

LANES = 8  # doubles on a cache line, and in the widest vectors
_AT_ONCE = 4  # products that are added together


class _Vectors:
    """Writes instructions on vectors, from and to arrays of float64."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        from llvmlite import ir

        self.ir = ir
        self.builder = builder
        self.kind = ir.VectorType(ir.DoubleType(), LANES)
        self.zero = ir.Constant(self.kind, [0.0] * LANES)
        pairs = zip(signature.args, args, strict=True)
        self.arrays = [context.make_array(kind)(context, builder, value=a) for kind, a in pairs]

    def size(self, array: Any, axis: int) -> Any:
        return self.builder.extract_value(array.shape, axis)

    def place(self, array: Any, row: Any) -> Any:
        """Address of a row."""
        start = self.builder.mul(row, row.type(LANES))
        return self.builder.bitcast(self.builder.gep(array.data, [start]), self.kind.as_pointer())

    def load(self, array: Any, row: Any) -> Any:
        return self.builder.load(self.place(array, row), align=8)  # that of one number

    def store(self, vector: Any, array: Any, row: Any) -> None:
        self.builder.store(vector, self.place(array, row), align=8)

    def spread(self, array: Any, i: Any) -> Any:
        """One number in all lanes."""
        ir = self.ir
        number = self.builder.load(self.builder.gep(array.data, [i]))
        blank = ir.Constant(self.kind, ir.Undefined)
        first = self.builder.insert_element(blank, number, ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, blank, lanes)

    def loop(self, start: Any, stop: Any, step: int) -> Any:
        from numba.core import cgutils

        return cgutils.for_range_slice(self.builder, start, stop, start.type(step))

    def variable(self) -> Any:
        """Address of a vector that starts at 0."""
        from numba.core import cgutils

        return cgutils.alloca_once_value(self.builder, self.zero)

    def raise_by(self, variable: Any, vector: Any) -> None:
        builder = self.builder
        builder.store(builder.fadd(builder.load(variable), vector), variable)

    def combine(self, weights: Any, begin: Any, n: Any, rows: Any, first: Any) -> Any:
        """Sum over ``m < n`` of ``weights[begin + m] rows[first + m]``, four rows at a time."""
        builder = self.builder
        total = self.variable()
        builder.store(self.zero, total)

        def term(m: Any) -> Any:
            weight = self.spread(weights, builder.add(begin, m))
            return builder.fmul(weight, self.load(rows, builder.add(first, m)))

        whole = builder.and_(n, n.type(-_AT_ONCE))
        with self.loop(n.type(0), whole, _AT_ONCE) as (m, _):
            a, b, c, d = (term(builder.add(m, n.type(i))) for i in range(_AT_ONCE))
            self.raise_by(total, builder.fadd(builder.fadd(a, b), builder.fadd(c, d)))
        with self.loop(whole, n, 1) as (m, _):
            self.raise_by(total, term(m))
        return builder.load(total)


def _lowest(typing: Any, bits: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], args[0].type.__class__(1)(0))

    return types.int64(types.int64), emit


def _combine(typing: Any, weights: Any, rows: Any, out: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        weights, rows, out = vectors.arrays
        n = vectors.size(weights, 0)
        vectors.store(vectors.combine(weights, n.type(0), n, rows, n.type(0)), out, n.type(0))
        return context.get_dummy_value()

    return types.void(weights, rows, out), emit


def _measure(typing: Any, rows: Any, mean: Any, bands: Any, away: Any, out: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        rows, mean, bands, away, out = vectors.arrays
        height = vectors.size(bands, 0)
        width = vectors.size(bands, 1)
        zero = height.type(0)
        with vectors.loop(zero, height, 1) as (i, _):
            apart = builder.fsub(vectors.load(rows, i), vectors.spread(mean, i))
            vectors.store(apart, away, i)
        total = vectors.variable()
        builder.store(vectors.zero, total)
        with vectors.loop(zero, height, 1) as (i, _):
            left = builder.sub(height, i)
            n = builder.select(builder.icmp_signed("<", width, left), width, left)
            length = vectors.combine(bands, builder.mul(i, width), n, away, i)
            vectors.raise_by(total, builder.fmul(length, length))
        vectors.store(builder.load(total), out, zero)
        return context.get_dummy_value()

    return types.void(rows, mean, bands, away, out), emit


@intrinsic(_lowest)
def lowest(bits):
    """Return the number of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


@intrinsic(_combine)
def combine(weights, rows, out):
    """Set `out` to the sum over ``m`` of ``weights[m] rows[m]``."""
    terms = weights[:, None] * rows[: len(weights)]
    whole = len(terms) - len(terms) % _AT_ONCE
    out[:] = 0.0
    for m in range(0, whole, _AT_ONCE):
        out += (terms[m] + terms[m + 1]) + (terms[m + 2] + terms[m + 3])
    for term in terms[whole:]:
        out += term


@intrinsic(_measure)
def measure(rows, mean, bands, away, out):
    """Find the squared lengths ``|R (x - mean)|^2`` of eight points, which lie in lanes.

    Of the upper triangle ``R`` in `bands` (features, bands); `away` (features, LANES) is workspace.
    """
    D, width = bands.shape
    away[:D] = rows[:D] - mean[:, None]
    out[:] = 0.0
    length = out.copy()
    for i in range(D):
        combine(bands[i, : min(width, D - i)], away[i:], length)
        out += length**2
