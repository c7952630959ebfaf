"""What operators are told about a database: whether it is sound, and how much it holds."""

from typing import NamedTuple

from threadmark.errors import shown
from threadmark.model import Problem, beginning_of


class VerifyReport(NamedTuple):
    """What `verify` looked at, and what it found."""

    threads: int
    """How many threads there are; 0 if `verify` was given the id of a thread that does not exist."""
    checkpoints: int
    writes: int
    problems: list[Problem]
    """What is damaged or orphaned, whoever asks."""
    unreadable: list[Problem]
    """What this program cannot decode, one problem for each checkpoint. It is empty unless `decode=True` was given."""

    def __repr__(self) -> str:
        """Show the counts, and the beginning of long lists."""
        counts = f"threads={self.threads}, checkpoints={self.checkpoints}, writes={self.writes}"
        problems, unreadable = (beginning_of(list(map(repr, each))) for each in (self.problems, self.unreadable))
        return f"VerifyReport({counts}, problems=[{problems}], unreadable=[{unreadable}])"


class ChannelStats(NamedTuple):
    """What one channel's values take."""

    values: int
    bytes_stored: int
    """The segments that its values consist of. Segments shared with other channels count for each of them."""
    bytes_whole: int

    def plus(self, other: "ChannelStats") -> "ChannelStats":
        """Both together."""
        return ChannelStats(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Stats(NamedTuple):
    """What is stored, and what it would take if every checkpoint held its values whole.

    Keys, checks and indexes, which any saver has, and the pages of the database are in none of the figures.
    """

    threads: int
    """How many threads there are; 0 if `stats` was given the id of a thread that does not exist."""
    checkpoints: int
    writes: int
    segments: int
    bytes_stored: int
    bytes_whole: int
    bytes_overhead: int
    """Those of `bytes_stored` that hold nothing of a value: manifests and digests, the records of batches, and what
    frames or seals a segment. In a small database they may be more than what is saved."""
    channels: dict[str, ChannelStats]
    problems: list[Problem]
    """Checkpoints and writes whose rows are damaged: their stored bytes are counted, what they would be is not known.

    `verify` names damaged values, too.
    """

    def __repr__(self) -> str:
        """Show the figures, and of many channels those with the largest values."""
        largest = sorted(self.channels.items(), key=lambda item: item[1].bytes_whole, reverse=True)
        figures = [f"{name}={value}" for name, value in zip(self._fields, self, strict=True) if isinstance(value, int)]
        channels = beginning_of([f"{shown(name)}: {of_one}" for name, of_one in largest])
        problems = beginning_of([repr(problem) for problem in self.problems])
        return f"Stats({', '.join(figures)}, channels={{{channels}}}, problems=[{problems}])"
