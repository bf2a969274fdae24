"""The command `ropewalk`, the same as without Python: `python -m ropewalk`."""

import sys

from ropewalk import _native


def main() -> int:
    return _native.cli(["ropewalk", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
