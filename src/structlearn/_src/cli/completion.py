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
#: Words by "COMMAND" and by "COMMAND --option"; where an option is not listed, files.
_SCRIPT = """\
_structlearn() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""
    local command="${COMP_WORDS[1]}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=@commands@
    else
        case "$command $before" in
@values@
        *) case "$current" in
            -*) case "$command" in
@options@
                esac ;;
            esac ;;
        esac
    fi
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
    options = []
    values = []
    for name, parser in commands.items():
        shown = [each for each in parser._actions if each.help is not argparse.SUPPRESS]
        every = [option for action in shown for option in action.option_strings]
        options.append(f"                {name}) words={_quoted(every)} ;;")
        for action in shown:
            places = "|".join(f'"{name} {option}"' for option in action.option_strings)
            if action.choices and not places:  # a word after the command itself
                places = f'"{name} {name}"'
            if action.choices:
                values.append(f"        {places}) words={_quoted(action.choices)} ;;")
    filled = _SCRIPT.replace("@commands@", _quoted([*commands, "--help", "--version"]))
    return filled.replace("@values@", "\n".join(values)).replace("@options@", "\n".join(options))


def _quoted(words: Any) -> str:
    return shlex.quote(" ".join(map(str, words)))
