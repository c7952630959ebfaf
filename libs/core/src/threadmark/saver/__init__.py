"""All semantics of a saver, once for every backend; the blocking and the asyncio face."""

from threadmark.saver.face import Saver
from threadmark.saver.kit import CACHE_BYTES, SaverOptions

__all__ = ["CACHE_BYTES", "Saver", "SaverOptions"]
