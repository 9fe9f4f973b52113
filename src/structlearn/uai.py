"""Files of the UAI competitions other than models: evidence, query variables, answers."""

from structlearn._src.files.uai_answer import UaiAnswer, read_answer, write_answer
from structlearn._src.files.uai_evidence import read_evidence, read_variables, write_evidence

__all__ = [
    "UaiAnswer", "read_answer", "read_evidence", "read_variables", "write_answer",
    "write_evidence",
]  # fmt: skip
