"""Experiments use the library as everybody does; what they need beyond that is listed here."""

from __future__ import annotations

import pathlib
import re
from types import ModuleType

import pytest

import papers
import structlearn
from papers import inside

ROOT = pathlib.Path(papers.__file__).parent
#: Who may import private names, and why.
EXCEPTIONS = {
    "inside.py": "parts of objectives, for all experiments",
    "command.py": "flags and progress are those of the command `structlearn`",
    "tour/command.py": "the same",
    "__main__.py": "starts that command with one more subcommand",
    "tour/__main__.py": "the same",
    "data/recordings.py": "fetches and checks files as the library does",
    "comparators/infinite_logit.py": "a sampler of the library with another likelihood",
    "comparators/mean_field.py": "estimates what the library's samplers draw, from their parts",
    "comparators/storage.py": "saves these models as the library saves its own",
    "comparators/variational.py": "the library's conjugate priors, in expectation",
}
FILES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}


def public():
    """All objects that have public names."""
    for name in set(structlearn.__all__) - {"__version__"}:
        value = getattr(structlearn, name)
        if isinstance(value, ModuleType):
            yield from (getattr(value, each) for each in value.__all__ if name != "torch")
        else:
            yield value


def test_no_other_file_uses_private_names():
    private = {name for name, text in FILES.items() if "structlearn._src" in text}
    assert private == set(EXCEPTIONS)


@pytest.mark.parametrize("name", inside.__all__)
def test_private_names_are_used_and_have_no_public_one(name):
    value = getattr(inside, name)
    assert not any(each is value for each in public())
    others = (text for file, text in FILES.items() if file != "inside.py")
    assert any(re.search(rf"\b{name}\b", text) for text in others)
