from threadmark.saver.proving.writes import Write
from threadmark.store import WriteRow

def proven_writes(thread_id: str, rows: list[WriteRow], write_class: type[Write]) -> list[Write] | None: ...
