"""The command `threadmark`: its table of commands, and its handling of errors."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Literal, NoReturn, TextIO

import click

import threadmark
from threadmark import ThreadmarkError
from threadmark_cli.command import LazyGroup
from threadmark_cli.exits import CLOSED, DONE, FAILED, INTERRUPTED, WRONG, OutputClosedError, code_of
from threadmark_cli.output import Output

COMMANDS = {
    "threads": "threadmark_cli.commands.threads:threads",
    "log": "threadmark_cli.commands.log:log",
    "show": "threadmark_cli.commands.show:show",
    "diff": "threadmark_cli.commands.diff:diff",
    "blame": "threadmark_cli.commands.blame:blame",
    "search": "threadmark_cli.commands.search:search",
    "items": "threadmark_cli.commands.items:items",
    "effects": "threadmark_cli.commands.effects:effects",
    "stats": "threadmark_cli.commands.checking:stats",
    "verify": "threadmark_cli.commands.checking:verify",
    "doctor": "threadmark_cli.commands.doctor:doctor",
    "serve": "threadmark_cli.commands.serving:serve",
    "fork": "threadmark_cli.commands.editing:fork",
    "restore": "threadmark_cli.commands.editing:restore",
    "copy": "threadmark_cli.commands.editing:copy",
    "rename": "threadmark_cli.commands.editing:rename",
    "update": "threadmark_cli.commands.editing:update",
    "delete": "threadmark_cli.commands.editing:delete",
    "prune": "threadmark_cli.commands.cleaning:prune",
    "retention": "threadmark_cli.commands.cleaning:retention",
    "keys": "threadmark_cli.commands.keys:keys",
    "reencrypt": "threadmark_cli.commands.upkeep:reencrypt",
    "migrate": "threadmark_cli.commands.moving:migrate",
    "export": "threadmark_cli.commands.moving:export",
    "backup": "threadmark_cli.commands.upkeep:backup",
    "setup": "threadmark_cli.commands.upkeep:setup",
    "upgrade": "threadmark_cli.commands.upkeep:upgrade",
    "ddl": "threadmark_cli.commands.upkeep:ddl",
}
"""The module of each command. The order is that of the help."""

_DEEPEST = 10_000
"""Calls within calls: values may be nested a thousand deep."""

group = LazyGroup(
    "threadmark",
    commands=COMMANDS,
    help="Look through the threads of agents: their history, their states, what changed and when.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
)
click.version_option(threadmark.__version__, prog_name="threadmark")(group)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
    raise SystemExit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    _prepare_streams()
    try:
        return _run(argv or ["--help"])
    except KeyboardInterrupt:
        return INTERRUPTED
    except (OutputClosedError, BrokenPipeError):
        _drop_output()
        return CLOSED
    except OSError as error:
        if _debugs(argv):
            raise
        _drop_output()
        with suppress(OSError):  # stderr itself may be broken
            Output(color=_color_option(argv)).fail(_reason(error))
        return FAILED


def _run(argv: Sequence[str]) -> int:
    """Run the command, and report its error. Returns the exit code."""
    try:
        returned = group.main(args=list(argv), prog_name="threadmark", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return INTERRUPTED
    except (click.ClickException, ThreadmarkError) as error:
        if _debugs(argv):
            raise
        return _report(error, Output(color=_color_option(argv)))
    except RecursionError:
        Output(color=_color_option(argv)).fail(
            "a value is nested too deeply to be written whole: name a part of it, or leave out --full or --json"
        )
        return WRONG
    return returned if isinstance(returned, int) else DONE


def _debugs(argv: Sequence[str]) -> bool:
    """Whether the option is there; behind `--` it is an argument."""
    return "--debug" in (argv[: argv.index("--")] if "--" in argv else argv)


def _color_option(argv: Sequence[str]) -> bool | None:
    """The choice of colours, for a message about a command line that could not be read."""
    if "--no-color" in argv:
        return False
    return True if "--color" in argv else None


def _report(error: click.ClickException | ThreadmarkError, out: Output) -> int:
    """Report an error, and return its exit code."""
    if isinstance(error, click.ClickException):
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        out.fail(error.format_message())
        return error.exit_code
    out.fail(str(error))
    return code_of(error)


def _reason(error: OSError) -> str:
    """The operating system's refusal, and the file; without one it was the output."""
    place = repr(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else "what was to be written"
    return f"{place}: {error.strerror or error}"


def _prepare_streams() -> None:
    """Let a terminal or a locale that lacks a character show its escape. Streams that are closed lead nowhere."""
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stdout = sys.stdout or _nowhere("w")
    sys.stderr = sys.stderr or _nowhere("w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere(mode: Literal["r", "w"]) -> TextIO:
    return open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123 - open for as long as the process


def _drop_output() -> None:
    """Drop unwritten output at the exit: its reader is gone, or its file is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
