"""Public data sets, from a folder of yours or from where they come."""

from structlearn._src.files.datasets import load_basenp, load_conll2000, load_ocr
from structlearn._src.files.fetch import cache_folder, data_path, download, fetch_uai

__all__ = [
    "cache_folder", "data_path", "download", "fetch_uai", "load_basenp", "load_conll2000",
    "load_ocr",
]  # fmt: skip
