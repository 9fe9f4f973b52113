"""What commands tell on standard error."""

from __future__ import annotations

import re
import sys

import pytest

from structlearn._src.cli.progress import ProgressLine, fail, finish, paint, say


def on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_one_line_that_is_cleared(capsys, monkeypatch):
    on_a_terminal(monkeypatch)
    line = ProgressLine(wanted=False)
    line(0.25, "half " * 40)
    line(0.5, "too soon after the first to be shown")
    shown = capsys.readouterr().err
    assert shown.startswith("\r####------------  half half")
    assert "soon" not in shown
    assert len(shown) <= 80
    assert "\n" not in shown
    say("structlearn: something else\n")  # over the bar, not behind it
    assert re.fullmatch(r"\r +\rstructlearn: something else\n", capsys.readouterr().err)
    line.clear()
    assert capsys.readouterr().err == ""


def test_quiet_wins(capsys):
    line = ProgressLine(wanted=True, quiet=True, every=0.0)
    line(0.5, "working")
    line.tell("done", "all of it")
    line.clear()
    assert capsys.readouterr().err == ""


def test_a_log_gets_everything(tmp_path, capsys):
    line = ProgressLine(wanted=False, quiet=True, log=tmp_path / "log")
    line.tell("read", "a file", 1.25)
    fail("error: it is odd", 2)
    finish()
    text = (tmp_path / "log").read_text()
    assert re.fullmatch(r"\S+ \S+ read      a file, 1.2 s\n.*error: it is odd\n", text, re.S)
    assert capsys.readouterr().err == "structlearn: error: it is odd\n"
    say("later\n")
    assert "later" not in (tmp_path / "log").read_text()


def test_colours_are_for_terminals(capsys, monkeypatch):
    assert paint("error:", "red") == "error:"
    on_a_terminal(monkeypatch)
    assert paint("error:", "red") == "\x1b[31merror:\x1b[0m"
    assert fail("error: no", 2) == 2
    ProgressLine(wanted=False).tell("done", "converged: all is well")
    text = capsys.readouterr().err
    assert text.startswith("structlearn: \x1b[31merror:\x1b[0m no\n\x1b[1mdone")
    assert "\x1b[32mconverged\x1b[0m: all" in text


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(name, value, monkeypatch, capsys):
    on_a_terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    assert paint("error:", "red") == "error:"
