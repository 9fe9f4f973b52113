"""Files of the UAI competitions beside models: evidence, variables of a query, answers."""

from structlearn._src.files.uai import (
    read_evidence,
    read_uai,
    read_variables,
    write_evidence,
    write_uai,
)
from structlearn._src.files.uai_answer import (
    UaiAnswer,
    format_map,
    format_marginal_map,
    format_marginals,
    format_partition,
    read_answer,
)

__all__ = [
    "UaiAnswer", "format_map", "format_marginal_map", "format_marginals", "format_partition",
    "read_answer", "read_evidence", "read_uai", "read_variables", "write_evidence", "write_uai",
]  # fmt: skip
