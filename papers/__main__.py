"""``python -m papers`` is ``structlearn reproduce``."""

from __future__ import annotations

import sys

from papers import command
from structlearn._src.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]], commands=(command,)))
