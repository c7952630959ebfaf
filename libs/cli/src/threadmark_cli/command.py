"""The classes behind every command: the options that all have, the database as first argument, examples in the help."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from threadmark_cli.exits import OutputClosedError
from threadmark_cli.session import Session
from threadmark_cli.settings import database_first, global_options, settings_of

_DATABASE = "threadmark_cli.database"
"""The key in a context's `meta` of whether the first argument is the database."""


class Command(click.Command):
    """A command, to whose function a `Session` is given.

    `examples` is a text of lines that stand in the help: what to type, and behind `#` what it does. A command whose
    own arguments are databases has `takes_databases`.
    """

    def __init__(self, *args: Any, examples: str = "", takes_databases: bool = False, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._takes_databases = takes_databases
        self._global_options = global_options()
        self._database = click.Argument(["database"], expose_value=False, callback=_database_given)
        self.examples = [line.strip() for line in examples.strip().splitlines()]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those that every command has."""
        *own, help_option = super().get_params(ctx)
        database = [self._database] if ctx.meta.get(_DATABASE) else []
        return [*database, *own, *self._global_options, help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Decide first whether the first argument names the database."""
        if not ctx.resilient_parsing:
            ctx.meta[_DATABASE] = database_first(ctx, self, args)
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
        """Show where the database may stand."""
        options, *others = super().collect_usage_pieces(ctx)
        database = [] if self._takes_databases else ["[DATABASE]"]
        return [options, *database, *(each for each in others if each != "DATABASE")]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")
        super().format_epilog(ctx, formatter)


def command(name: str, *, examples: str, takes_databases: bool = False) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function, whose docstring is its help."""

    def decorate(function: Callable[..., Any]) -> Command:
        made: Command = click.command(name, cls=Command, examples=examples, takes_databases=takes_databases)(function)
        return made

    return decorate


def database_was_given() -> bool:
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
        with _closing_told():
            return super().make_context(*args, **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _closing_told():
            return super().invoke(ctx)

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
def _closing_told() -> Iterator[None]:
    """Keep click from ending the process by itself where whoever read the output has closed it."""
    try:
        yield
    except BrokenPipeError as gone:
        raise OutputClosedError from gone


def _database_given(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    if isinstance(value, str):
        ctx.obj = settings_of(ctx)._replace(url=value)
    return value
