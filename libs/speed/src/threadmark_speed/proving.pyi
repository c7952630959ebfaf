from threadmark.saver.batches import Write
from threadmark.store.contract import WriteRow

def proven_writes(thread_id: str, rows: list[WriteRow], write_class: type[Write]) -> list[Write] | None: ...
