"""The semantics of a saver, written once for every backend, with a sync and an async API."""

from threadmark.saver.context import SaverOptions, StorageOptions, ThreadOptions
from threadmark.saver.protocol import SaverProtocol
from threadmark.saver.saver import Saver, expect_saver

__all__ = ["Saver", "SaverOptions", "SaverProtocol", "StorageOptions", "ThreadOptions", "expect_saver"]
