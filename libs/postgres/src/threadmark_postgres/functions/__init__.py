"""The server's functions, each of which reads or changes a thread in one call. Each is a file of SQL in this folder.

Their names end with the number of their format, because the columns that a function returns cannot be replaced. They
run with the rights of their caller.
"""

import re
from importlib.resources import files


def text_of(name: str) -> str:
    """Return the statement that creates a function, without its schema (`threadmark_postgres.schema`)."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def refusal_of(name: str) -> str:
    """Return the statement that lets a function raise an error, so that no process of its format goes on."""
    signature = re.split(r"\sLANGUAGE\s", text_of(name))[0]
    return (
        f"{signature} LANGUAGE plpgsql AS $body$\nBEGIN\n    RAISE EXCEPTION USING ERRCODE = '{SWITCHED}', "
        "MESSAGE = 'the database is written in a later format of Threadmark';\nEND\n$body$\n"
    )


SWITCHED = "TM001"
"""The SQLSTATE of those errors."""
