"""``python -m structlearn`` is the command ``structlearn``."""

from __future__ import annotations

import sys

from structlearn._src.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
