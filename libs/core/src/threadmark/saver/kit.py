"""What every operation of a saver works with."""

from typing import NamedTuple

from threadmark.header import Serializer
from threadmark.recall import Recall
from threadmark.store import Store


class Kit(NamedTuple):
    """A backend's store, the serializer of values, and the shared memory of recent encodings."""

    store: Store
    serde: Serializer
    recall: Recall
