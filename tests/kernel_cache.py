"""A name for the state of the compiled code's source."""

from __future__ import annotations

import hashlib
import pathlib

_KERNELS = pathlib.Path(__file__).parents[1] / "src/structlearn/_src/kernels"


def kernel_hash() -> str:
    """Sixteen hexadecimal digits that change whenever the text of a kernel does.

    Numba's disk cache does not see edits in a called file. Whoever edits kernels names the
    folder in NUMBA_CACHE_DIR by this hash, before Numba is imported.
    """
    text = b"".join(path.read_bytes() for path in sorted(_KERNELS.glob("**/*.py")))
    return hashlib.sha256(text).hexdigest()[:16]
