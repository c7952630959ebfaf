"""`python -m threadmark_cli`: the command `threadmark`."""

from threadmark_cli.main import main

main()
