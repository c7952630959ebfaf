"""Items and cached results beside the checkpoints of a saver, under LangGraph's names."""

from threadmark_store.store import Store

__all__ = ["Store"]
