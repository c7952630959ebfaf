"""The server's functions, each of which reads or changes a thread in one call. Each is a file of SQL in this folder.

Their names end with the number of their format, because the columns that a function returns cannot be replaced. They
run with the rights of their caller.
"""

import re
from importlib.resources import files


def text_of(name: str) -> str:
    """Return the statement that creates a function, without its schema (`threadmark_postgres.schema`)."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def params_of(name: str) -> str:
    """Return the parameters of a call with their types, such as "$1::text, $2::bigint", in the function's order."""
    return ", ".join(each_param_of(name))


def each_param_of(name: str) -> list[str]:
    """Return the parameters of `params_of` one by one, for calls that put an expression in the place of one."""
    kinds = re.findall(r"\bp_\w+ ([\w\[\]]+)", _signature(name))
    return [f"${number}::{kind}" for number, kind in enumerate(kinds, 1)]


def refusal_of(name: str) -> str:
    """Return the statement that lets a function raise an error, so that no process of its format goes on."""
    return (
        f"{_signature(name)} LANGUAGE plpgsql AS $body$\nBEGIN\n    RAISE EXCEPTION USING ERRCODE = '{SWITCHED}', "
        "MESSAGE = 'the database is written in a later format of Threadmark';\nEND\n$body$\n"
    )


def _signature(name: str) -> str:
    (found,) = re.findall(r"^CREATE .*?(?=\sLANGUAGE\s)", text_of(name), re.DOTALL | re.MULTILINE)
    return str(found)


SWITCHED = "TM001"
"""The SQLSTATE of those errors."""
