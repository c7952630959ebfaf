"""The commands, one module for each group of them. `threadmark_cli.main.COMMANDS` lists them."""
