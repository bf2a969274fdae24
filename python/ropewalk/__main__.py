"""`python -m ropewalk`: the command `ropewalk`."""

import sys

from ropewalk import _native


def main() -> int:
    if sys.argv[1:2] == ["tune"]:
        from ropewalk._tune import main as tune

        return tune(sys.argv[2:])
    return _native.cli(["ropewalk", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
