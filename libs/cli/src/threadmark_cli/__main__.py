"""The beginning of the command `threadmark`, and of `python -m threadmark_cli`."""

from typing import NoReturn


def start() -> NoReturn:
    """Run the command and exit. Ctrl-C is answered from here on, while modules are still being imported, too."""
    try:
        from threadmark_cli.main import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # as in runtime/processes.py, which is not imported yet


if __name__ == "__main__":
    start()
