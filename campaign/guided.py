"""Fuzzing that is guided by coverage, where atheris is installed: ``python -m campaign.guided rules``.

Atheris (libFuzzer for Python) keeps inputs that reach new code and goes on from them. It has no place in
the project's environments: install it beside them, for example with ``pip install --target``, and put
that folder on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import time

NAMES = (
    "uai", "evidence", "answers", "columns", "templates", "rules", "data-files", "json", "rule-models",
)  # fmt: skip
PACKAGES = ["structlearn", "lark", "yaml"]


def fuzz(name: str, corpus: pathlib.Path, arguments: list[str]) -> None:
    """Feed one parser until libFuzzer has enough, or something other than a named error comes."""
    import atheris

    from structlearn._src import kernels

    # Before all else: Numba could not compile what is instrumented.
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        importlib.import_module(module.name)
    with atheris.instrument_imports(include=PACKAGES):
        import structlearn.rules
        import structlearn.uai  # noqa: F401
        from campaign import parsers
        from structlearn.errors import StructlearnError

    place = pathlib.Path(os.environ["CAMPAIGN_PLACE"])
    (place / "a.psl").write_text("1: Knows(A, B) -> Likes(A, B)\n")
    read, samples, _ = dict(zip(NAMES, parsers.readers(place), strict=True))[name]
    for i, sample in enumerate(samples):
        (corpus / f"sample{i}").write_bytes(sample)

    def target(data: bytes) -> None:
        try:
            read(data)
        except StructlearnError:
            return

    atheris.Setup([sys.argv[0], *arguments, str(corpus)], target)
    atheris.Fuzz()


def guide(name: str, seconds: int, seed: int, keep: pathlib.Path) -> tuple[int, float, str]:
    """Fuzz in a process of its own; how many inputs it took, how long, and what failed."""
    from campaign.parsers import folder

    keep.mkdir(parents=True, exist_ok=True)
    with folder() as place:
        corpus = keep / name
        corpus.mkdir(exist_ok=True)
        limits = [
            "-timeout=20",
            "-rss_limit_mb=4096",
            "-max_len=4096",
            f"-artifact_prefix={keep}/{name}-",
        ]
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "campaign.guided",
            name,
            "--inside",
            str(corpus),
        ]
        command += [*limits, f"-max_total_time={seconds}", f"-seed={seed % 2**31 + 1}"]
        began = time.perf_counter()
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "CAMPAIGN_PLACE": str(place)}
        )  # fmt: skip
        counted = re.findall(r"#(\d+)\s", done.stderr) or ["0"]
        failed = done.stderr[-5000:] if done.returncode else ""
        return int(counted[-1]), time.perf_counter() - began, failed


def main() -> int:
    """Fuzz one parser or all, and add the counts to the records of the campaign."""
    if "--inside" in sys.argv:
        fuzz(sys.argv[1], pathlib.Path(sys.argv[3]), sys.argv[4:])
        return 0
    from campaign import ROOT
    from campaign.record import Record
    from campaign.runner import Outcome, Tally

    parser = argparse.ArgumentParser(prog="python -m campaign.guided", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seconds", type=int, default=60, help="for each parser (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "campaign")
    options = parser.parse_args()
    try:
        import atheris  # noqa: F401
    except ImportError:
        parser.error(
            "atheris is not installed: pip install --target FOLDER atheris, and PYTHONPATH=FOLDER"
        )
    record = Record(options.out, options.seed)
    failures = 0
    for name in options.names:
        count, seconds, failed = guide(name, options.seconds, options.seed, options.out / "guided")
        record.write({name: Tally(count, 1, seconds, int(bool(failed)))})
        print(
            f"{name}: {count:,} inputs in {seconds:.0f} seconds{', FAILED' * bool(failed)}",
            flush=True,
        )
        if failed:
            failures += 1
            record.fail(Outcome(name, options.seed, seconds, "guided", failed))
            print(failed, file=sys.stderr)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
