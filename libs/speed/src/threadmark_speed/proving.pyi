from collections.abc import Sequence

from threadmark.saver.batches import Write
from threadmark.store.contract import WriteRow

def proven_writes(write_class: type[Write], thread_id: str, rows: Sequence[WriteRow]) -> list[Write] | None: ...
