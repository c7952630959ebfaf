"""`Session`: the argument of every command, with its output and its database."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from threadmark import ConfigError, SaverProtocol
from threadmark_cli.exits import DatabaseError
from threadmark_cli.keyring_file import read_keyring
from threadmark_cli.opening import creating, open_for_reading, open_for_writing, printable_url, url_of
from threadmark_cli.output import Output
from threadmark_cli.settings import KEYRING_VARIABLE, Settings


class Session:
    """One run of a command."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.out = Output(as_json=settings.as_json, color=settings.color, pager=settings.pager)

    @property
    def url(self) -> str:
        """The database's URL. Raises ConfigError if none was named."""
        return url_of(self.settings.url)

    @property
    def printable_url(self) -> str:
        """The URL without a password."""
        return printable_url(self.url)

    @contextmanager
    def saver(
        self,
        *,
        write: bool = False,
        create: bool = False,
        expect_tables: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> Iterator[SaverProtocol]:
        """Open the database, and close it at the end. Raises DatabaseError if its tables should be there, and are not.

        Unless it is to be written to, nothing is created or changed in it, and objects are views by name and fields
        instead of being made, so that no class is needed and no code of one runs. For LangGraph's own database, it is
        an object with the reading methods of a saver. Only with `create` a SQLite file is made that is not there.
        `options` are those of the saver unless the command line has others.
        """
        open_for = creating if create else open_for_writing if write else open_for_reading
        opened = open_for(self.url, {**(options or {}), **self.saver_options()})
        with opened:
            if expect_tables and not write and not opened.has_tables():
                raise DatabaseError(f"{self.printable_url} has no tables of Threadmark: is it the right database?")
            saver = opened if write else opened.without_classes()
            yield saver if self.settings.owner is None else saver.for_owner(self.settings.owner)

    def expect_no_owner(self) -> None:
        """Raise UsageError with --owner, for a command that is about the whole database."""
        if self.settings.owner is not None:
            raise click.UsageError("Every thread is copied, whoever it belongs to: leave --owner out.")

    def saver_options(self) -> dict[str, Any]:
        """Return the options that the saver is opened with."""
        options = dict(map(_option, self.settings.options))
        path = self.settings.keyring or os.environ.get(KEYRING_VARIABLE)
        if path:
            options["keyring"] = read_keyring(path, self.out.warn)
        return options


def _option(text: str) -> tuple[str, Any]:
    """An option of a saver from `name=value`, whose value may be JSON: a number, true, false or null."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(f"an option is written NAME=VALUE, such as schema=agents, not {text!r}")
    try:
        read = json.loads(value)
    except ValueError:
        return name, value
    return name, read if read is None or isinstance(read, bool | int | float | str) else value
