"""The output of the commands: tables, JSON lines, progress bars, questions."""

from threadmark_cli.output.output import Output
from threadmark_cli.output.printable import one_line, printable
from threadmark_cli.output.styles import Part, StyleName, plain
from threadmark_cli.output.tables import Column, fitted

__all__ = ["Column", "Output", "Part", "StyleName", "fitted", "one_line", "plain", "printable"]
