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
        first = tensors[0]
        if first.is_cuda and first.get_device() != torch.cuda.current_device():
            with torch.cuda.device(first.device):  # Triton launches on the current one
                self(programs, tensors, numbers, **facts)
            return
        if not (self.direct and first.is_cuda):
            self.kernel[(programs,)](*tensors, *numbers, **facts)
            return
        addresses = [t.data_ptr() for t in tensors]  # lists: generators take twice as long
        key = (
            first.get_device(), tuple([t.dtype for t in tensors]),
            tuple([address % _ALIGNED == 0 for address in addresses]),
            tuple([number >= _WIDE for number in numbers]), tuple(facts.values()),
        )  # fmt: skip
        if key in self.kept:
            binary, constants = self.kept[key]
            try:
                # Of addresses Triton need not ask the driver where they lie.
                binary[(programs, 1, 1)](*addresses, *numbers, *constants)
                return
            except (TypeError, ValueError, AttributeError):  # another version of Triton
                self.direct = False
        binary = self.kernel[(programs,)](*tensors, *numbers, **facts)
        self.kept[key] = binary, tuple(facts[name] for name in self._constants)

    @cached_property
    def _constants(self) -> tuple[str, ...]:
        """The names of the constants in the order of the kernel."""
        return tuple(each.name for each in self.kernel.params if each.is_constexpr)
