"""`python -m ropewalk`: the command `ropewalk`."""

import sys

from ropewalk import _native


def main() -> int:
    return _native.cli(["ropewalk", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
