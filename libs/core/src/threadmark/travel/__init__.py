"""A thread's past: its history and branches, what differs, where a value comes from, what was found, and going back."""

from threadmark.travel.model import Blame, Diff, HistoryPage, SearchPage, Tree, Values

__all__ = ["Blame", "Diff", "HistoryPage", "SearchPage", "Tree", "Values"]
