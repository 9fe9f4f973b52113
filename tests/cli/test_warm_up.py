"""``structlearn warm-up`` leaves nothing to compile."""

from __future__ import annotations

import subprocess
import sys

from structlearn._src.cli import tiny_problems, warm_up
from structlearn._src.cli.main import main

_CODE = """
from structlearn._src.cli.main import main
from structlearn._src.cli.warm_up import kernels
code = main(["warm-up"])
left = [name for name, kernel in kernels().items() if not kernel.nopython_signatures]
raise SystemExit(f"{code} {left}" if code or left else 0)
"""


def test_every_kernel_is_compiled():
    done = subprocess.run(
        [sys.executable, "-c", _CODE], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\n{len(warm_up.kernels())} kernels are kept in " in done.stdout
    assert all(f"{name} " in done.stdout for name in tiny_problems.KINDS)


def test_no_folder_to_keep_them(monkeypatch, capsys):
    class Kernel:
        nopython_signatures = ("one",)

        class stats:  # noqa: N801
            cache_path = None

    monkeypatch.setattr(tiny_problems, "KINDS", {})
    monkeypatch.setattr(warm_up, "kernels", lambda: {"a": Kernel})
    assert main(["warm-up"]) == 0
    assert "1 kernels were compiled, but no folder can be written" in capsys.readouterr().out
