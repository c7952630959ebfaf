"""The classes behind every command: the options that all have, the database as first argument, examples in the help."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from threadmark_cli.exits import OutputClosedError
from threadmark_cli.output.printable import one_line
from threadmark_cli.session import Session
from threadmark_cli.settings import URL_VARIABLE, database_first, files, global_options, is_url, settings_of

_DATABASE = "threadmark_cli.database"
"""The key in a context's `meta` of whether the first argument is the database."""


class Command(click.Command):
    """A command whose function gets a `Session`.

    `examples` is a text of lines that stand in the help: the line to type, and behind `#` its effect. A command whose
    own arguments are databases has `takes_databases`; one that is about none has not `has_database`.
    """

    def __init__(
        self,
        *args: Any,
        examples: str = "",
        takes_databases: bool = False,
        has_database: bool = True,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self._takes_databases = takes_databases or not has_database
        self._has_database = has_database
        self._global_options = global_options()
        self._database = click.Argument(
            ["database"], expose_value=False, callback=_remember_database, shell_complete=files
        )
        self.examples = [line.strip() for line in examples.strip().splitlines()]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those that every command has."""
        *own, help_option = super().get_params(ctx)
        database = [self._database] if ctx.meta.get(_DATABASE) else []
        return [*database, *own, *self._global_options, help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Decide first whether the first argument names the database."""
        ctx.meta[_DATABASE] = self._has_database and database_first(ctx, self, args, completing=ctx.resilient_parsing)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command's function with the session."""
        if self.callback is None:
            return None
        session = Session(settings_of(ctx))
        returned = ctx.invoke(self.callback, session, **ctx.params)
        session.out.flush()
        return returned

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show the place of the database."""
        options, *others = super().collect_usage_pieces(ctx)
        database = [] if self._takes_databases else ["[DATABASE]"]
        return [options, *database, *(each for each in others if each != "DATABASE")]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and which database those mean that name none."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")
        if not self._takes_databases:
            formatter.write(f"\nWithout [DATABASE], the command opens that of --url or {URL_VARIABLE}.\n")
        super().format_epilog(ctx, formatter)


def command(
    name: str, *, examples: str, takes_databases: bool = False, has_database: bool = True
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function, whose docstring is its help."""

    def decorate(function: Callable[..., Any]) -> Command:
        made: Command = click.command(
            name, cls=Command, examples=examples, takes_databases=takes_databases, has_database=has_database
        )(function)
        return made

    return decorate


def has_database_argument() -> bool:
    """Whether the first argument of the running command named the database."""
    return bool(click.get_current_context().meta.get(_DATABASE))


class LazyGroup(click.Group):
    """A group of commands that are imported when they are asked for."""

    def __init__(self, *args: Any, commands: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._commands = commands
        self.params.extend(global_options())

    def make_context(self, *args: Any, **attributes: Any) -> click.Context:
        """Read the command line, which may write help."""
        with _reporting_close():
            return super().make_context(*args, **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _reporting_close():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. For a name that is none, the error suggests one."""
        if not ctx.resilient_parsing and args[0] not in self._commands and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{self._meant(args)}")
        return super().resolve_command(ctx, args)

    def _meant(self, args: Sequence[str]) -> str:
        close = get_close_matches(args[0].lower(), self._commands, n=3, cutoff=0.5)
        if close:
            return f" Did you mean {' or '.join(close)}?"
        command = args[1] if len(args) > 1 and args[1] in self._commands else ""
        is_database = is_url(args[0]) or os.path.exists(args[0])  # noqa: PTH110 - unlike Path, it takes any text
        if is_database or command:
            return f" The command comes first: threadmark {command or 'threads'} {one_line(args[0])}"
        return " The names are in threadmark --help."

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return their names, in the order of the table."""
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import one."""
        if cmd_name not in self._commands:
            return None
        module, _, name = self._commands[cmd_name].partition(":")
        found: click.Command = getattr(import_module(module), name)
        return found


@contextmanager
def _reporting_close() -> Iterator[None]:
    """Keep click from ending the process by itself if the reader of the output has closed it."""
    try:
        yield
    except BrokenPipeError as gone:
        raise OutputClosedError from gone


def _remember_database(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    if isinstance(value, str):
        ctx.obj = settings_of(ctx)._replace(url=value)
    return value
