"""Classes that states are made of, at the top level of a module as an application has them."""

from dataclasses import dataclass

from pydantic import BaseModel


@dataclass
class Position:
    row: int
    column: int


class OrderLine(BaseModel):
    name: str
    position: Position


class Order(BaseModel):
    lines: list[OrderLine]
    note: str | None = None
