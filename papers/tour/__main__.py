"""``python -m papers.tour`` is ``structlearn demo``."""

from __future__ import annotations

import sys

from papers.tour import command
from structlearn._src.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]], commands=(command,)))
