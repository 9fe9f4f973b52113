"""Public data sets, read from a local folder or downloaded."""

from structlearn._src.files.datasets import fetch_uai, load_basenp, load_conll2000, load_ocr

__all__ = ["fetch_uai", "load_basenp", "load_conll2000", "load_ocr"]
