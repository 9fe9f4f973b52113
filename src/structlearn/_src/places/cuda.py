"""A graphics card as a place; needs PyTorch, which is imported when the place is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

from structlearn._src.common.errors import PlaceError
from structlearn._src.common.place import Place
from structlearn._src.places.cuda_chain import ChainsOnCard
from structlearn._src.places.cuda_field import FieldsOnCard
from structlearn._src.places.cuda_graph import GraphsOnCard


class Cuda(ChainsOnCard, FieldsOnCard, GraphsOnCard, Place):
    """A graphics card, or in tests any other device of PyTorch."""

    name: ClassVar[str] = "cuda"

    def __init__(self, device: str = "cuda") -> None:
        self.device = _checked(device)

    def entered(self) -> AbstractContextManager[Any]:
        """Say what to do where a card has too little memory."""
        return _memory()


def _checked(device: str) -> str:
    """Return a device that can work; others are refused."""
    try:
        import torch
    except ModuleNotFoundError:
        raise PlaceError(
            "place='cuda' needs PyTorch, which is not installed: install structlearn[torch], or "
            "choose 'threads'"
        ) from None
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise PlaceError(
            "place='cuda' needs a graphics card that PyTorch can use, and torch.cuda.is_available()"
            " says that there is none: use a machine with one, or choose 'threads'"
        )
    return device


@contextmanager
def _memory() -> Iterator[None]:
    import torch

    try:
        yield
    except torch.OutOfMemoryError as reason:
        raise PlaceError(
            f"the card has too little memory for this ({str(reason).splitlines()[0]}): use a "
            f"larger card, smaller parts, or choose 'threads'"
        ) from reason
