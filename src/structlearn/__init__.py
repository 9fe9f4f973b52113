"""Structured prediction when part of the answer is hidden.

Public names load on first use, so that ``import structlearn`` stays cheap; `__init__.pyi` lists
them. Less common names are in public modules of their own: `structlearn.solvers`,
`structlearn.losses`, `structlearn.rules`, `structlearn.fields`, `structlearn.metrics`,
`structlearn.datasets`, `structlearn.uai`, `structlearn.errors`, `structlearn.torch` and, for those
who add to the library, `structlearn.extend`. Everything in `structlearn._src` is private.
"""

import os as _os

if _os.environ.get("STRUCTLEARN_PLACE", ""):  # seldom: places are loaded where one is named
    from structlearn._src.common.place import follow_environment as _follow_environment
    from structlearn._src.places.on import find_place as _find_place

    _follow_environment(_find_place)

_homes: dict[str, str] = {}  # modules of the public names, once one of them was asked for


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__all__":
        # Doors stay behind: `structlearn.torch` would take the place of PyTorch's `torch`.
        return [each for each in __dir__() if _public()[each] != __name__]
    home = _public().get(name)
    if home is None:
        raise AttributeError(f"module 'structlearn' has no attribute {name!r}")
    if home == __name__:
        return import_module(f"{home}.{name}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_public())


def _public() -> dict[str, str]:
    """Return the modules of the public names, as the stub lists them."""
    import re

    if not _homes:
        with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:
            imports = re.findall(r"^from (\S+) import \(?\s*(\w+) as", stub.read(), re.MULTILINE)
        _homes.update({name: module for module, name in imports})
    return _homes
