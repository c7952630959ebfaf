"""`threadmark items`: the items of stores, to list, show and remove."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadmark.model import count_text
from threadmark_cli.command import command
from threadmark_cli.commands.editing import dry_run_option, yes_option
from threadmark_cli.exits import DONE, WRONG, NotThereError
from threadmark_cli.items import items_in
from threadmark_cli.output import Column, Part
from threadmark_cli.output.quantities import bytes_text, time_text
from threadmark_cli.output.values import DEFAULT, EVERYTHING, brief, value_lines
from threadmark_cli.session import Session

if TYPE_CHECKING:
    from threadmark_store.looking import Items, ItemView

_PAGE = 200


def _value(item: "ItemView") -> Part:
    return brief(item.value) if item.problem is None else (item.problem, "bad")


_COLUMNS: tuple[Column["ItemView"], ...] = (
    Column("NAMESPACE", lambda item: (".".join(item.namespace), "name"), cut=True),
    Column("KEY", lambda item: (item.key, "id"), cut=True),
    Column("UPDATED (UTC)", lambda item: time_text(item.updated_at)),
    Column("BYTES", lambda item: bytes_text(item.bytes), right=True),
    Column("VALUE", _value, cut=True),
)


@command(
    "items",
    examples="""
    threadmark items agents.db                          # the 20 that were updated last
    threadmark items agents.db users.ada                # of this namespace and those below it
    threadmark items users.ada diet --full              # of THREADMARK_URL: one item, nothing left out
    threadmark items --namespaces                       # the namespaces
    threadmark items users.ada --delete --dry-run       # the size of all that would be removed
    """,
)
@click.argument("namespace", required=False)
@click.argument("key", required=False)
@click.option("--namespaces", is_flag=True, help="List namespaces instead of items.")
@click.option("--full", is_flag=True, help="Show all of a value, however long or deep it is.")
@click.option("--delete", is_flag=True, help="Remove the item, or all of the namespace and those below it.")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0 for all.")
@dry_run_option
@yes_option
def items(
    session: Session,
    *,
    namespace: str | None,
    key: str | None,
    namespaces: bool,
    full: bool,
    delete: bool,
    limit: int,
    dry_run: bool,
    yes: bool,
) -> int:
    """List the items of stores, the last updated first. With NAMESPACE and KEY, show one.

    The labels of a namespace are joined by dots: users.ada. No class of the application is needed.
    """
    if dry_run and not delete:
        raise click.UsageError("--dry-run is for --delete: to look changes nothing.")
    if delete and namespace is None:
        raise click.UsageError("Name the NAMESPACE to remove, or an item by its NAMESPACE and KEY.")
    with session.saver(write=delete and not dry_run) as saver:
        found = items_in(saver.without_classes() if delete else saver)
        if delete:
            return _delete(session, found, namespace or "", key, dry_run=dry_run, yes=yes)
        with session.out.paged():
            if namespace is not None and key is not None:
                return _show(session, found, namespace, key, full=full)
            if namespaces:
                return _list_namespaces(session, found, namespace or "", limit)
            return _list(session, found, namespace or "", limit)


def item_record(item: "ItemView") -> dict[str, Any]:
    """An item as `--json` has it."""
    times = {name: getattr(item, name) for name in ("created_at", "updated_at", "expires_at")}
    record: dict[str, Any] = {
        "namespace": list(item.namespace),
        "key": item.key,
        **{name: time and time.isoformat() for name, time in times.items()},
        "owner": item.owner,
        "bytes": item.bytes,
    }
    return record | ({"value": item.value} if item.problem is None else {"problem": item.problem})


def _list(session: Session, found: "Items", prefix: str, limit: int) -> int:
    listed: list[bool] = []

    def rows() -> Iterator["ItemView"]:
        after = None
        while True:
            some, after = found.run(found.page(prefix, min(limit - len(listed), _PAGE) if limit else _PAGE, after))
            for item in some:
                listed.append(item.problem is None)
                yield item
            if after is None or len(listed) == limit:
                return

    session.out.rows(_COLUMNS, rows(), item_record)
    count, size = found.run(found.count(prefix))
    if count > len(listed):
        of_all = f"{len(listed):,} of {count_text(count, 'item')} ({bytes_text(size)})"
        session.out.note(f"{of_all}: --limit 0 lists all")
    return DONE if all(listed) else WRONG


def _list_namespaces(session: Session, found: "Items", prefix: str, limit: int) -> int:
    names = found.run(found.namespaces(prefix))
    for name in names[: limit or None]:
        if session.out.as_json:
            session.out.record({"namespace": name.split(".")})
        else:
            session.out.line((name, "name"))
    if limit and len(names) > limit:
        session.out.note(f"{limit:,} of {count_text(len(names), 'namespace')}: --limit 0 lists all")
    return DONE


def _show(session: Session, found: "Items", namespace: str, key: str, *, full: bool) -> int:
    out, item = session.out, found.run(found.item(namespace, key))
    if item is None:
        raise _no_item(namespace, key)
    if out.as_json:
        out.record(item_record(item))
        return DONE if item.problem is None else WRONG
    out.line(("namespace  ", "dim"), (namespace, "name"))
    out.line(("key        ", "dim"), (key, "id"))
    out.line(("created    ", "dim"), f"{time_text(item.created_at)} UTC")
    out.line(("updated    ", "dim"), f"{time_text(item.updated_at)} UTC")
    if item.expires_at:
        out.line(("expires    ", "dim"), f"{time_text(item.expires_at)} UTC")
    if item.owner is not None:
        out.line(("owner      ", "dim"), item.owner)
    out.line()
    if item.problem is not None:
        out.fail(item.problem)
        return WRONG
    for name, value in item.value.items():
        for parts in value_lines(str(name), value, EVERYTHING if full else DEFAULT):
            out.line(*parts)
    return DONE


def _delete(session: Session, found: "Items", namespace: str, key: str | None, *, dry_run: bool, yes: bool) -> int:
    count, size = (0, 0)
    if key is None:
        count, size = found.run(found.count(namespace))
    elif item := found.run(found.item(namespace, key)):
        count, size = 1, item.bytes
    if not count:
        raise _no_item(namespace, key)
    named = f"item {key!r} of namespace {namespace!r}" if key is not None else f"namespace {namespace!r}"
    described = f"{named}: {count_text(count, 'item')} ({bytes_text(size)})"
    if not dry_run:
        session.out.confirm(f"Delete {described} of {session.printable_url}?", yes=yes)
        count = found.run(found.delete(namespace, key))
    if session.out.as_json:
        session.out.record({"namespace": namespace.split("."), "key": key, "items": count, "dry_run": dry_run})
    else:
        session.out.line("would delete " if dry_run else "deleted ", described)
    return DONE


def _no_item(namespace: str, key: str | None) -> NotThereError:
    if key is None:
        return NotThereError(f"there is no item in namespace {namespace!r}")
    return NotThereError(f"there is no item {key!r} in namespace {namespace!r}")
