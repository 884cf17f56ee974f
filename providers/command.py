"""Entry of the command `softneuro`, also where what it needs is missing."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line. Exit status: 0, 1 for a failure that was told, 2 for a call that is wrong."""
    try:
        from softneuro.providers import cli
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("softneuro: the command line needs click: pip install 'softneuro[cli]'", file=sys.stderr)
        sys.exit(1)
    cli.main(prog_name="softneuro")


if __name__ == "__main__":
    main()
