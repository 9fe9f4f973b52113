"""What a user waits for: imports, compilations, and whether they are kept."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

TOUR = """
import numpy as np
import structlearn as sl
rng = np.random.default_rng(0)
grid = sl.grid(rng.normal(size=(3, 3, 2)), rng.normal(size=(2, 2)))
chain = sl.hidden_chain(*(rng.normal(size=(3, 2)) for _ in range(2)), np.eye(2), np.eye(2))
"""

COUNT = """
import importlib, pkgutil
import structlearn._src.kernels as package
def dispatchers():
    for info in pkgutil.walk_packages(package.__path__, "structlearn._src.kernels."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if hasattr(value, "signatures") and value.py_func.__module__ == module.__name__:
                yield f"{info.name}.{name}", value
"""


def _run(code, cache, **environment):
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        pytest.skip("nothing is compiled: NUMBA_DISABLE_JIT is set")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("heavy", ["numba", "scipy", "sklearn", "matplotlib", "networkx", "pandas"])
def test_importing_the_package_imports_nothing_heavy(heavy, tmp_path):
    out = _run(f"import structlearn, sys; print({heavy!r} in sys.modules)", tmp_path)
    assert out.strip() == "False"


def test_inference_needs_no_optional_package():
    code = TOUR + "sl.infer(grid); import sys; print({'sklearn', 'networkx'} & {*sys.modules})"
    assert _run(code, os.environ["NUMBA_CACHE_DIR"]).strip() == "set()"


def test_a_second_process_compiles_nothing(tmp_path):
    code = (
        TOUR
        + COUNT
        + (
            "sl.infer(grid, 'partition')\n"
            "print(sum(sum(d.stats.cache_misses.values()) for _, d in dispatchers()),"
            " sum(sum(d.stats.cache_hits.values()) for _, d in dispatchers()))"
        )
    )
    first, second = (_run(code, tmp_path).split() for _ in range(2))
    assert int(first[0]) > 0
    assert int(second[0]) == 0
    assert int(second[1]) > 0


def test_no_kernel_is_compiled_for_many_types():
    code = (
        TOUR
        + COUNT
        + (
            "for method in ('auto', 'bp', 'trw', 'tree', 'gibbs'):\n"
            "    for query in ('partition', 'marginals', 'map', 'samples'):\n"
            "        try:\n"
            "            sl.infer(grid, query, method=method, n_samples=4)\n"
            "        except sl._src.common.errors.QueryError:\n"
            "            pass\n"
            "sl.infer(chain, 'marginal_map', method='portfolio')\n"
            "sl.infer(grid, evidence={0: 1}, method='bp')\n"
            "sl.infer_many([grid] * 3)\n"
            "print([n for n, d in dispatchers() if len(d.signatures) > 2])"
        )
    )
    assert _run(code, os.environ["NUMBA_CACHE_DIR"]).strip() == "[]"


def test_without_a_folder_for_the_cache_it_warns_once_and_works(tmp_path):
    code = """
    import warnings
    from structlearn._src.kernels import jit
    first = jit.kernel(lambda x: x + 1)  # of no file, so that there is no folder beside it
    second = jit.kernel(lambda x: x + 2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        print(first(1), second(1), [w.category.__name__ for w in told])
    """
    assert _run(code, tmp_path).strip() == "2 3 ['CacheWarning']"


def test_layers_import_downwards_only():
    root = pathlib.Path(__file__).parents[2]
    tool = pathlib.Path(sys.executable).with_name("lint-imports")
    if not tool.exists():
        pytest.skip("import-linter is not installed; make lint runs it")
    done = subprocess.run([tool], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
