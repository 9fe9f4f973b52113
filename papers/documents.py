"""The five documents behind the library."""

from __future__ import annotations

from typing import NamedTuple


class Document(NamedTuple):
    """A paper, or a lecture."""

    name: str
    authors: str
    title: str
    place: str
    year: int


LECTURE = Document(
    "lecture",
    "Naumann, Stein and Andres",
    "Machine learning I: conditional graphical models",
    "Technische Universität Dresden, winter term",
    2025,
)
HYBRID_LOSS = Document(
    "hybrid-loss paper",
    "Shi, Reid, Caetano, van den Hengel and Wang",
    "A hybrid loss for multiclass and structured prediction",
    "IEEE Transactions on Pattern Analysis and Machine Intelligence",
    2014,
)
MARGINAL_SVM = Document(
    "marginal SVM paper",
    "Ping, Liu and Ihler",
    "Marginal structured SVM with hidden variables",
    "International Conference on Machine Learning",
    2014,
)
PAIRED_DUAL = Document(
    "paired-dual paper",
    "Bach, Huang, Boyd-Graber and Getoor",
    "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    "International Conference on Machine Learning",
    2015,
)
INFINITE_HMM = Document(
    "infinite-HMM paper",
    "Zhang, Zhu and Zhang",
    "Max-margin infinite hidden Markov models",
    "International Conference on Machine Learning",
    2014,
)

#: In the order of the results page.
DOCUMENTS = (MARGINAL_SVM, HYBRID_LOSS, PAIRED_DUAL, INFINITE_HMM, LECTURE)
