"""All semantics of a saver, once for every backend; the blocking and the asyncio face."""

from threadmark.saver.face import Saver
from threadmark.saver.kit import SaverOptions

__all__ = ["Saver", "SaverOptions"]
