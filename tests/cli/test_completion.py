"""``structlearn completion``: what a shell is offered."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from structlearn._src.cli.main import main


def offered(script, *words):
    """What bash offers for the last of the words of a line."""
    line = " ".join(f"'{word}'" for word in words)
    call = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _structlearn"
    code = f'{script}\n{call}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def script(capsys):
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tr"], ["train"]),
        (["train", "file", "--check"], ["--checkpoint", "--checkpoint-seconds"]),
        (["train", "--loss", "h"], ["hinge", "hybrid"]),
        (["infer", "m.uai", "--query", "M"], ["MAR", "MAP", "MMAP"]),
        (["psl", "--driver", "pa"], ["paired"]),
        (["completion", ""], ["bash", "zsh"]),
        (["train", "--model", "m"], []),  # files, which the shell knows
        (["infer", "--random"], []),  # a name of before
    ],
)
def test_bash(words, found, script):
    assert offered(script, "structlearn", *words) == found


def test_zsh_reads_the_script_of_bash(script, capsys):
    assert main(["completion", "zsh"]) == 0
    text = capsys.readouterr().out
    assert "bashcompinit" in text
    assert text.endswith(script)
