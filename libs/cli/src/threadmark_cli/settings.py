"""The options that every command has, before its name or behind it, and the database as its first argument."""

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from threadmark.urls import GROUP

URL_VARIABLE = "THREADMARK_URL"
KEYRING_VARIABLE = "THREADMARK_KEYRING"


class Settings(NamedTuple):
    """The values of the options that every command has."""

    url: str | None = None
    as_json: bool = False
    color: bool | None = None
    pager: bool = True
    owner: str | None = None
    keyring: str | None = None
    options: tuple[str, ...] = ()
    debug: bool = False


def settings_of(ctx: click.Context) -> Settings:
    """The values so far, of this command and those around it."""
    found = ctx.find_object(Settings)
    return Settings() if found is None else found


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    """Let the shell complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def global_options() -> list[click.Option]:
    """New objects of the options that every command has."""
    return [
        _option(
            "url",
            "-u",
            "--url",
            metavar="URL",
            shell_complete=files,
            help=f"The database: a URL, or a path (or set {URL_VARIABLE}).",
        ),
        _flag("as_json", "--json", help="One JSON object a line."),
        _flag("color", "--color/--no-color", help="Colours everywhere, or nowhere (by default on a terminal only)."),
        _flag("pager", "--pager/--no-pager", help="Whether long output on a terminal goes through PAGER."),
        _option("owner", "--owner", metavar="OWNER", help="Only this owner's threads are there."),
        _option(
            "keyring",
            "--keyring",
            metavar="FILE",
            shell_complete=files,
            help=f"The keys of a sealed database (or {KEYRING_VARIABLE}).",
        ),
        _option("options", "-o", "--option", metavar="NAME=VALUE", multiple=True, help="An option of the saver."),
        _flag("debug", "--debug", help="Show the traceback of an error.", hidden=True),
    ]


def _option(name: str, *declarations: str, **attributes: Any) -> click.Option:
    return click.Option([*declarations, name], expose_value=False, callback=_remember(name), **attributes)


def _flag(name: str, declaration: str, **attributes: Any) -> click.Option:
    return _option(name, declaration, is_flag=True, default=None, **attributes)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        before = settings_of(ctx)
        if name == "options":  # those before the command's name and those behind it
            ctx.obj = before._replace(options=(*before.options, *value))
        elif value is not None:
            ctx.obj = before._replace(**{name: value})
        return value

    return callback


def database_first(ctx: click.Context, command: click.Command, args: list[str], *, completing: bool = False) -> bool:
    """Whether the first argument is the database: a URL, or anything if nothing else has named a database.

    With `completing`, the shell asks for the next word, so the first argument may still be missing.
    """
    options = [param for param in command.params if isinstance(param, click.Option)]
    alone = click.Command(command.name, params=[*options, *global_options()], context_settings=command.context_settings)
    parsed, arguments, _ = alone.make_parser(ctx).parse_args(args=list(args))
    if "url" in parsed or settings_of(ctx).url is not None or not arguments:
        return completing and "url" not in parsed and settings_of(ctx).url is None and not os.environ.get(URL_VARIABLE)
    return is_url(arguments[0]) or not os.environ.get(URL_VARIABLE)


def is_url(text: str) -> bool:
    """Whether this is a URL, and not a path. `memory:` and `replicated:?...` are, too: a saver has their scheme."""
    scheme, colon, _ = text.partition(":")
    return "://" in text or (bool(colon) and any(entry.name == scheme for entry in entry_points(group=GROUP)))
