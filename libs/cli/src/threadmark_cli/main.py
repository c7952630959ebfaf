"""The command `threadmark`: its table of commands, and what becomes of errors."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

import threadmark
from threadmark import ThreadmarkError
from threadmark_cli.command import LazyGroup
from threadmark_cli.exits import CLOSED, DONE, INTERRUPTED, OutputClosedError, code_of
from threadmark_cli.output import Output

COMMANDS = {
    "threads": "threadmark_cli.commands.threads:threads",
    "log": "threadmark_cli.commands.log:log",
    "show": "threadmark_cli.commands.show:show",
    "diff": "threadmark_cli.commands.diff:diff",
    "blame": "threadmark_cli.commands.blame:blame",
    "search": "threadmark_cli.commands.search:search",
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
    "reencrypt": "threadmark_cli.commands.upkeep:reencrypt",
    "migrate": "threadmark_cli.commands.moving:migrate",
    "export": "threadmark_cli.commands.moving:export",
    "backup": "threadmark_cli.commands.upkeep:backup",
    "setup": "threadmark_cli.commands.upkeep:setup",
    "ddl": "threadmark_cli.commands.upkeep:ddl",
}
"""Where each command is. The order is that of the help."""

group = LazyGroup(
    "threadmark",
    commands=COMMANDS,
    help="Look through the threads of agents: their history, their states, what changed and when.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
click.version_option(threadmark.__version__, prog_name="threadmark")(group)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit."""
    raise SystemExit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in given
    _write_what_cannot_be_encoded()
    try:
        returned = group.main(args=given, prog_name="threadmark", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as wanted:
        return wanted.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (OutputClosedError, BrokenPipeError):
        _drop_output()
        return CLOSED
    except (click.ClickException, ThreadmarkError) as error:
        if debug:
            raise
        return _told(error)
    return returned if isinstance(returned, int) else DONE


def _told(error: click.ClickException | ThreadmarkError) -> int:
    """Say what went wrong, and return the exit code for it."""
    if isinstance(error, click.ClickException):
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        Output().fail(error.format_message())
        return error.exit_code
    Output().fail(str(error))
    return code_of(error)


def _write_what_cannot_be_encoded() -> None:
    """Let a terminal or a locale that lacks a character show its escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Whoever read the output is gone: what is still to be written at the exit goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
