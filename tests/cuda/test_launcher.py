"""Launches that are repeated: binaries are kept by what tells arguments apart."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from structlearn._src.cuda.launcher import Launcher  # noqa: E402


class Kernel:
    """What Triton's functions look like from outside; binaries write down what they are given."""

    def __init__(self, refuse=False):
        self.params = [
            SimpleNamespace(name=n, is_constexpr=n.isupper()) for n in ("x", "n", "A", "B")
        ]
        self.compiled = []
        self.direct = []
        self.refuse = refuse

    def __getitem__(self, grid):
        def run(*args, **facts):
            self.compiled.append((torch.cuda.current_device(), grid, args, facts))
            return self

        def again(*args):
            if self.refuse:
                raise TypeError("function takes another number of arguments")
            self.direct.append((torch.cuda.current_device(), grid, args))

        return run if len(grid) == 1 else again


class Tensor:
    """A tensor on a card that does not exist."""

    is_cuda = True
    dtype = torch.float32

    def __init__(self, address=0, number=0):
        self.address = address
        self.device = torch.device("cuda", number)

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.device.index


@pytest.fixture(autouse=True)
def _card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


def test_the_second_launch_goes_to_the_binary():
    kernel = Kernel()
    launch = Launcher(kernel)
    x = Tensor(16)
    for programs in (3, 5):
        launch(programs, (x,), (7,), B=2, A=1, num_warps=4)
    assert len(kernel.compiled) == 1
    assert kernel.direct == [(0, (5, 1, 1), (16, 7, 1, 2))]  # constants in the order of the kernel


@pytest.mark.parametrize(
    "other",
    [
        ((Tensor(8),), (7,), {"A": 1, "B": 2}),  # an address that is not aligned
        ((Tensor(),), (2**31,), {"A": 1, "B": 2}),  # a number that takes 64 bits
        ((Tensor(),), (7,), {"A": 1, "B": 3}),
    ],
)
def test_what_binaries_depend_on(other):
    kernel = Kernel()
    launch = Launcher(kernel)
    launch(1, (Tensor(),), (7,), A=1, B=2)
    tensors, numbers, facts = other
    launch(1, tensors, numbers, **facts)
    assert len(kernel.compiled) == 2
    assert not kernel.direct


def test_other_versions_of_triton():
    kernel = Kernel(refuse=True)
    launch = Launcher(kernel)
    for _ in range(3):
        launch(1, (Tensor(),), (7,), A=1, B=2)
    assert len(kernel.compiled) == 3


def test_kernels_run_where_their_tensors_lie(monkeypatch):
    """Triton launches on the current card, whatever it is given."""
    current = [0]

    @contextmanager
    def moved(device):
        current[0] = device.index
        yield
        current[0] = 0

    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    monkeypatch.setattr(torch.cuda, "device", moved)
    kernel = Kernel()
    launch = Launcher(kernel)
    for card in (1, 0, 1):
        launch(1, (Tensor(number=card),), (7,), A=1, B=2)
        assert current == [0]
    assert [where for where, *_ in kernel.compiled] == [1, 0]
    assert [where for where, *_ in kernel.direct] == [1]


def test_hosts_keep_nothing():
    kernel = Kernel()
    launch = Launcher(kernel)
    for _ in range(2):
        launch(1, (torch.zeros(1),), (7,), A=1, B=2)
    assert len(kernel.compiled) == 2
