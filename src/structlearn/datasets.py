"""Public data sets, from a folder of yours or from where they come."""

from structlearn._src.files.datasets import load_basenp, load_conll2000, load_ocr
from structlearn._src.files.fetch import fetch_uai

__all__ = ["fetch_uai", "load_basenp", "load_conll2000", "load_ocr"]
