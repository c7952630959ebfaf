"""A thread's past: history, branches, differences, the origin of a value, search, and going back."""

from threadmark.travel.model import Blame, Diff, HistoryPage, SearchPage, Tree, Values

__all__ = ["Blame", "Diff", "HistoryPage", "SearchPage", "Tree", "Values"]
