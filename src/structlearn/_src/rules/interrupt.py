"""What stops a query of DuckDB, as exceptions of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise what stops DuckDB as the rest of Python would."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        # Ctrl-C within a query comes as a bare RuntimeError: DuckDB has no type for that.
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise
    except duckdb.OutOfMemoryException:
        raise MemoryError(
            "the groundings need more memory than there is, or than memory_limit allows; "
            "estimate() says which rules are large"
        ) from None
