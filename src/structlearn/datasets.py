"""Public data sets, read from a local folder or downloaded."""

from structlearn._src.files.datasets import (
    data_path,
    fetch_uai,
    load_basenp,
    load_conll2000,
    load_ocr,
)

__all__ = ["data_path", "fetch_uai", "load_basenp", "load_conll2000", "load_ocr"]
