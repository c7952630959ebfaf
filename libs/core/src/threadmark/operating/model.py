"""The reports for operators of a database: damage, and sizes."""

from typing import NamedTuple

from threadmark.errors import short_repr
from threadmark.model import Problem, beginning_of


class VerifyReport(NamedTuple):
    """The rows that `verify` read, and the problems that it found."""

    threads: int
    """The number of threads; 0 if `verify` got the id of a thread that does not exist."""
    checkpoints: int
    writes: int
    problems: list[Problem]
    """Damaged and orphaned data. This does not depend on the program that reads it."""
    unreadable: list[Problem]
    """Checkpoints that this program cannot decode, one problem each. Empty unless you passed `decode=True`."""

    def __repr__(self) -> str:
        """Show the counts, and the beginning of long lists."""
        counts = f"threads={self.threads}, checkpoints={self.checkpoints}, writes={self.writes}"
        problems, unreadable = (beginning_of(list(map(repr, each))) for each in (self.problems, self.unreadable))
        return f"VerifyReport({counts}, problems=[{problems}], unreadable=[{unreadable}])"


class ChannelStats(NamedTuple):
    """The size of one channel's values."""

    values: int
    bytes_stored: int
    """The segments of its values. A segment shared with other channels counts for each of them."""
    bytes_whole: int

    def plus(self, other: "ChannelStats") -> "ChannelStats":
        """Return the sum of both."""
        return ChannelStats(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Stats(NamedTuple):
    """The size of the stored data, and its size if every checkpoint held its values whole.

    No figure includes keys, checks and indexes, which any saver has, or the overhead of the database's pages.
    """

    threads: int
    """The number of threads; 0 if `stats` got the id of a thread that does not exist."""
    checkpoints: int
    writes: int
    segments: int
    bytes_stored: int
    bytes_whole: int
    bytes_overhead: int
    """The part of `bytes_stored` that holds no value: manifests and digests, records of batches, and the frame or seal
    of a segment. In a small database it may be more than the savings."""
    channels: dict[str, ChannelStats]
    problems: list[Problem]
    """Checkpoints and writes with damaged rows. Their stored bytes are counted; their whole size is unknown.

    `verify` also names damaged values."""

    def __repr__(self) -> str:
        """Show the figures. If there are many channels, show those with the largest values."""
        largest = sorted(self.channels.items(), key=lambda item: item[1].bytes_whole, reverse=True)
        figures = [f"{name}={value}" for name, value in zip(self._fields, self, strict=True) if isinstance(value, int)]
        channels = beginning_of([f"{short_repr(name)}: {of_one}" for name, of_one in largest])
        problems = beginning_of([repr(problem) for problem in self.problems])
        return f"Stats({', '.join(figures)}, channels={{{channels}}}, problems=[{problems}])"
