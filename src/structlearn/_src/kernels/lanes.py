"""Eight numbers at a time: what Numba makes no vector instructions of, as its loops are too short.

Rows of `LANES` numbers lie one after the other: those of eight positions, a row for each feature.
Sums are in the same order for every lane, and in that of `density.combine`, whatever the machine:
vectors of eight that it does not have become shorter ones.
"""

from __future__ import annotations

from typing import Any

from structlearn._src.kernels.atomic import emit_prefetch
from structlearn._src.kernels.jit import intrinsic

LANES = 8  # doubles on a cache line, and in the widest vectors
_READ = 0, 3, 1  # a prefetch of data that will be read, into all caches
_AT_ONCE = 4  # products that are added together


class _Vectors:
    """Writes instructions on vectors, from and to arrays of float64."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        from llvmlite import ir

        self.ir = ir
        self.builder = builder
        self.kind = ir.VectorType(ir.DoubleType(), LANES)
        self.zero = ir.Constant(self.kind, [0.0] * LANES)
        self.arrays = [
            context.make_array(kind)(context, builder, value=value)
            for kind, value in zip(signature.args, args, strict=True)
            if hasattr(kind, "ndim")
        ]

    def size(self, array: Any, axis: int) -> Any:
        return self.builder.extract_value(array.shape, axis)

    def place(self, array: Any, i: Any) -> Any:
        """Address of a vector that begins with an entry."""
        return self.builder.bitcast(self.builder.gep(array.data, [i]), self.kind.as_pointer())

    def load(self, array: Any, i: Any) -> Any:
        return self.builder.load(self.place(array, i), align=8)  # that of one number

    def store(self, vector: Any, array: Any, i: Any) -> None:
        self.builder.store(vector, self.place(array, i), align=8)

    def load_row(self, array: Any, row: Any) -> Any:
        return self.load(array, self.builder.mul(row, row.type(LANES)))

    def spread(self, array: Any, i: Any) -> Any:
        """One entry in all lanes."""
        return self.fill(self.builder.load(self.builder.gep(array.data, [i])))

    def fill(self, number: Any) -> Any:
        ir = self.ir
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

    def number(self, value: Any) -> Any:
        """Address of an integer that starts at some value."""
        from numba.core import cgutils

        at = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, at)
        return at

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
            return builder.fmul(weight, self.load_row(rows, builder.add(first, m)))

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


def _add_multiple(typing: Any, weight: Any, row: Any, out: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        row, out = vectors.arrays
        n = vectors.size(out, 0)
        whole = builder.and_(n, n.type(-LANES))
        lanes = vectors.fill(args[0])
        with vectors.loop(n.type(0), whole, LANES) as (i, _):
            more = builder.fmul(lanes, vectors.load(row, i))
            vectors.store(builder.fadd(vectors.load(out, i), more), out, i)
        with vectors.loop(whole, n, 1) as (i, _):
            at = builder.gep(out.data, [i])
            more = builder.fmul(args[0], builder.load(builder.gep(row.data, [i])))
            builder.store(builder.fadd(builder.load(at), more), at)
        return context.get_dummy_value()

    return types.void(types.float64, row, out), emit


def _add_products(typing: Any, rows: Any, full: Any, out: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        rows, out = vectors.arrays
        height = vectors.size(rows, 0)
        zero, one = height.type(0), height.type(1)
        at = vectors.number(zero)
        with vectors.loop(zero, height, 1) as (i, _):
            row = vectors.load_row(rows, i)
            last = builder.icmp_signed("==", i, builder.sub(height, one))
            begin = builder.select(builder.or_(args[1], last), zero, i)
            with vectors.loop(begin, builder.add(i, one), 1) as (j, _):
                r = builder.load(at)
                more = builder.fmul(row, vectors.load_row(rows, j))
                place = builder.mul(r, r.type(LANES))
                vectors.store(builder.fadd(vectors.load(out, place), more), out, place)
                builder.store(builder.add(r, one), at)
        return context.get_dummy_value()

    return types.void(rows, types.boolean, out), emit


def _prefetch(typing: Any, rows: Any, i: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        width = vectors.size(vectors.arrays[0], 1)
        first = builder.gep(vectors.arrays[0].data, [builder.mul(args[1], width)])
        last = builder.gep(first, [builder.sub(width, width.type(1))])
        for place in (first, last):
            emit_prefetch(builder, place, _READ)
        return context.get_dummy_value()

    return types.void(rows, types.int64), emit


def _measure(typing: Any, rows: Any, mean: Any, bands: Any, away: Any, out: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        rows, mean, bands, away, out = vectors.arrays
        height = vectors.size(bands, 0)
        width = vectors.size(bands, 1)
        zero = height.type(0)
        with vectors.loop(zero, height, 1) as (i, _):
            apart = builder.fsub(vectors.load_row(rows, i), vectors.spread(mean, i))
            vectors.store(apart, away, builder.mul(i, i.type(LANES)))
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


@intrinsic(_add_multiple)
def add_multiple(weight, row, out):
    """Add `weight` times a row of any length to another."""
    out += weight * row


@intrinsic(_add_products)
def add_products(rows, full, out):
    """Add the products of every row with those up to itself, the lower triangle, row by row.

    Unless it is asked for in `full`, only squares, but all products of the last row.
    """
    r = 0
    for i in range(len(rows)):
        begin = 0 if full or i == len(rows) - 1 else i
        for j in range(begin, i + 1):
            out[r] += rows[i] * rows[j]
            r += 1


@intrinsic(_prefetch)
def prefetch(rows, i):
    """Ask for the ends of a row, of two cache lines at most, that will be read soon."""


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
