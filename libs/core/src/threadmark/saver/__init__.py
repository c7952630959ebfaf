"""All semantics of a saver, once for every backend; the blocking and the asyncio API."""

from threadmark.saver.context import SaverOptions
from threadmark.saver.saver import Saver

__all__ = ["Saver", "SaverOptions"]
