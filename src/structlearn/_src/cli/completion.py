"""``structlearn completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from structlearn._src.cli.arguments import add_command

_DESCRIPTION = """\
Print a script with which a shell completes commands, options and their values.
"""
_EPILOG = """\
For every new shell:
  bash: add this line to ~/.bashrc:  eval "$(structlearn completion bash)"
  zsh:  add this line to ~/.zshrc:   eval "$(structlearn completion zsh)"
"""
#: Zsh understands scripts of bash after these.
_ZSH = """\
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""
#: Words by "COMMAND --option" and by "COMMAND"; where there are none, files.
_SCRIPT = """\
_structlearn() {
    local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then command=""; fi
    case "$command ${COMP_WORDS[COMP_CWORD-1]}" in
@values@    *) if [ "${current:0:1}" = - ]; then case "$command" in
@options@        esac; fi ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _structlearn structlearn
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "let a shell complete commands and options"
    parser = add_command(subparsers, "completion", run, told, _DESCRIPTION, _EPILOG)
    parser.add_argument("shell", choices=("bash", "zsh"), help="which shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from structlearn._src.cli.main import make_parser

    commands = make_parser().commands or {}
    sys.stdout.write(_ZSH * (args.shell == "zsh") + script(commands))
    return 0


def script(commands: Any) -> str:
    """Return the script of bash for these commands and their parsers."""
    values = [_case('" structlearn"', [*commands, "--help", "--version"])]
    options = []
    for name, parser in commands.items():
        shown = [each for each in parser._actions if each.help is not argparse.SUPPRESS]
        options.append(_case(name, [word for action in shown for word in action.option_strings]))
        for action in shown:
            before = action.option_strings or [name]  # a word after the command itself
            if action.choices:
                values.append(_case("|".join(f'"{name} {x}"' for x in before), action.choices))
    return _SCRIPT.replace("@values@", "".join(values)).replace("@options@", "".join(options))


def _case(pattern: str, words: Any) -> str:
    return f"    {pattern}) words={shlex.quote(' '.join(words))} ;;\n"
