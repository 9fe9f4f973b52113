"""Kernels that are launched again and again, with little work of the host between.

Triton looks at every argument of every launch to find the binary that fits. That takes as long as
a small batch takes on the card, so the binary is kept here by what tells launches apart.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

_ALIGNED = 16  # bytes: addresses of that kind have binaries of their own
_WIDE = 2**31  # numbers from which on they take 64 bits


class Launcher:
    """One kernel, whose arguments are tensors, then numbers, then constants."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.kept: dict[Any, Any] = {}
        self.direct = True  # whether binaries take arguments in the way that is known here

    def __call__(
        self, programs: int, tensors: tuple[Tensor, ...], numbers: tuple[float, ...], **facts: Any
    ) -> None:
        """Launch so many programs; `facts` are constants and options of Triton."""
        key = self._key(tensors, numbers, facts) if self.direct and tensors[0].is_cuda else None
        if key is not None and key in self.kept:
            binary, constants = self.kept[key]
            try:
                binary[(programs, 1, 1)](*tensors, *numbers, *constants)
                return
            except (TypeError, ValueError, AttributeError):  # another version of Triton
                self.direct = False
        binary = self.kernel[(programs,)](*tensors, *numbers, **facts)
        if key is not None:
            self.kept[key] = binary, tuple(facts[name] for name in self._constants)

    def _key(self, tensors: tuple[Tensor, ...], numbers: tuple[float, ...], facts: Any) -> Any:
        """Return what a binary depends on."""
        kinds = tuple((t.dtype, t.data_ptr() % _ALIGNED == 0) for t in tensors)
        wide = tuple(number >= _WIDE for number in numbers)
        return torch.cuda.current_device(), kinds, wide, tuple(facts.values())

    @cached_property
    def _constants(self) -> tuple[str, ...]:
        """The names of the constants in the order of the kernel."""
        return tuple(each.name for each in self.kernel.params if each.is_constexpr)
