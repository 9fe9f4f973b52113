"""Docstrings with parts that are written elsewhere."""

from __future__ import annotations

from structlearn._src.common.document import completed, inherit_sections

SECTION = "Returns\n-------\nint\n    The number."


def make():
    class Number:
        """A number."""

        def value(self):
            """Return the value.

            Whatever it is.
            """

        @classmethod
        def one(cls):
            """Return 1."""

        def silent(self):
            pass

    return Number


def test_sections_follow_what_a_docstring_says():
    number = completed({"value": SECTION, "one": SECTION, "": SECTION})(make())
    assert number.value.__doc__ == f"Return the value.\n\nWhatever it is.\n\n{SECTION}"
    assert number.one.__doc__ == f"Return 1.\n\n{SECTION}"
    assert number.__doc__ == f"A number.\n\n{SECTION}"


def test_functions_can_be_completed():
    def double():
        """Return the double."""

    assert completed({"": SECTION})(double) is double
    assert double.__doc__.endswith(SECTION)


def test_what_has_no_docstring_gets_none():
    assert completed({"silent": SECTION})(make()).silent.__doc__ is None


def test_overriding_methods_inherit_sections():
    class Two(completed({"value": SECTION, "one": SECTION})(make())):
        def value(self):
            """Return 2."""

        def silent(self):
            """Say nothing."""

    inherit_sections(Two)
    assert Two.value.__doc__ == f"Return 2.\n\n{SECTION}"
    assert Two.silent.__doc__ == "Say nothing."


def test_own_sections_are_kept():
    class Two(completed({"value": SECTION})(make())):
        def value(self):
            """Return 2.

            Returns
            -------
            int
                Always 2.
            """

    before = Two.value.__doc__
    inherit_sections(Two)
    assert Two.value.__doc__ == before


def test_solvers_say_what_their_methods_take():
    from structlearn.solvers import Lbfgs, Solver

    sections = Solver.step.__doc__.partition("Parameters\n")[2]
    assert Lbfgs.step.__doc__.splitlines()[0] != Solver.step.__doc__.splitlines()[0]
    assert sections.strip().splitlines()[-1].strip() in Lbfgs.step.__doc__
    assert "Returns\n-------" in Lbfgs.step.__doc__
