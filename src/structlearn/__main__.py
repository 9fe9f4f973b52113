"""The command ``structlearn``, which is ``python -m structlearn`` as well."""

import sys

_interrupted = False  # by the keyboard, whatever became of it


def main(argv: list[str] | None = None) -> int:
    """Run the command with the arguments `argv`, or those of the program; return its exit code."""
    try:
        import os
        import signal

        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # closed by whoever started us
                setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        if argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        from structlearn._src.cli.main import main as run

        return run(argv)
    except KeyboardInterrupt:
        return _end()
    except (ImportError, SystemError):  # what some packages make of an interrupt
        if not _interrupted:
            raise
        return _end()


def _interrupt(*_: object) -> None:
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


def _end() -> int:
    sys.stderr.write("structlearn: interrupted before there was an answer\n")
    return 130


if __name__ == "__main__":
    sys.exit(main())
