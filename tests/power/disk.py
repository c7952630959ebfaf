"""A disk of which the power may fail: the files as the program sees them, and as a power cut may leave them.

A sync of a file makes all writes and truncations durable that were made before it began; a sync of the folder does the
same for its names. Anything later may reach the disk or not, each sector by itself, in any order; and a sector that
was being written may have its new bytes only up to some place, or from some place on.
"""

from dataclasses import dataclass, field
from random import Random

from power.recording import Event

Files = dict[str, bytes]
"""The files of the folder by their names."""

SECTORS = 512, 4096
_VOLATILE = "-shm"
"""The end of the name of SQLite's index of the log, which is memory that processes share: a power cut ends it."""


@dataclass
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)
    synced: int = 0
    """How many changes are durable, in all."""


def _change(content: bytearray, at: int, data: bytes) -> None:
    if at > len(content):
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


def _truncate(content: bytearray, length: int) -> None:
    if length < len(content):
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


def _apply(content: bytearray, change: Event) -> None:
    if change.kind == "W":
        _change(content, change.number, change.data)
    else:
        _truncate(content, change.number)


class Disk:
    """The folder after the events that were played."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        self._pending_names: list[tuple[str, _File | None]] = []
        self._renamed: list[tuple[int, int]] = []
        self._named = 0
        """How many changes of names are durable, in all."""
        self._syncs: dict[int, int] = {}
        """For each sync that has begun, how many changes there were in all."""

    def play(self, event: Event) -> None:
        """Play the next event."""
        match event.kind:
            case "C":
                self._files[event.file] = _File()
                self._name(event.data.decode(), self._files[event.file])
            case "U":
                self._name(event.data.decode(), None)
            case "R":
                old, new = event.data.decode().split("\0")
                self._renamed.append((self._named + len(self._pending_names), 2))
                self._name(new, self._names[old])
                self._name(old, None)
            case "S":
                self._syncs[event.number] = self._changes(event.file)
            case "E":
                self._synced(event.file, self._syncs.pop(event.number))
            case "W" | "T":
                self._files[event.file].pending.append(event)

    def all(self) -> Files:
        """The files if all that was written has reached the disk, as after the end of the process."""
        return {name: self._whole(file) for name, file in self._names.items() if not name.endswith(_VOLATILE)}

    def synced(self) -> Files:
        """The files if nothing has reached the disk that was not synced."""
        return {name: bytes(file.durable) for name, file in self._durable_names.items() if not name.endswith(_VOLATILE)}

    def some(self, random: Random) -> Files:
        """The files if some of the unsynced changes have reached the disk: any writes, sectors, parts of sectors."""
        names = self._some_names(random)
        lot = _Lot(random)
        return {name: lot.left_of(file) for name, file in names.items() if not name.endswith(_VOLATILE)}

    def unsynced(self) -> int:
        """How many changes are not durable yet."""
        files = {id(file): file for file in (*self._names.values(), *self._durable_names.values())}
        return len(self._pending_names) + sum(len(file.pending) for file in files.values())

    def _whole(self, file: _File) -> bytes:
        content = bytearray(file.durable)
        for change in file.pending:
            _apply(content, change)
        return bytes(content)

    def _name(self, name: str, file: _File | None) -> None:
        _rename(self._names, name, file)
        self._pending_names.append((name, file))

    def _changes(self, file: int) -> int:
        if not file:
            return self._named + len(self._pending_names)
        return self._files[file].synced + len(self._files[file].pending)

    def _synced(self, number: int, changes: int) -> None:
        if not number:
            durable = self._pending_names[: changes - self._named]
            for name, renamed in durable:
                _rename(self._durable_names, name, renamed)
            del self._pending_names[: len(durable)]
            self._named += len(durable)
            return
        file = self._files[number]
        now = file.pending[: max(0, changes - file.synced)]
        for change in now:
            _apply(file.durable, change)
        del file.pending[: len(now)]
        file.synced += len(now)

    def _some_names(self, random: Random) -> dict[str, _File]:
        """The changes of a folder up to some one, as a journal of the file system keeps them, or of each name."""
        names = dict(self._durable_names)
        ordered = random.random() < 0.5 or bool(self._renamed)
        last = random.randint(0, len(self._pending_names))
        if any(begin < self._named + last < begin + count for begin, count in self._renamed):
            last -= 1
        ended: set[str] = set()
        for number, (name, file) in enumerate(self._pending_names):
            if (number >= last) if ordered else (name in ended or random.random() < 0.5):
                ended.add(name)
            else:
                _rename(names, name, file)
        return names


def _rename(names: dict[str, _File], name: str, file: _File | None) -> None:
    if file is None:
        names.pop(name, None)
    else:
        names[name] = file


class _Lot:
    """Which parts of the pending changes reach the disk in one power cut."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._sector = random.choice(SECTORS)
        self._reached = random.choice((0.1, 0.5, 0.9))
        self._split = random.choice((0.0, 0.2, 1.0))
        self._torn = random.choice((0.0, 0.1))
        self._last = random.random() < 0.5
        """Whether the last change of each file is the only one that is not whole."""

    def left_of(self, file: _File) -> bytes:
        content = bytearray(file.durable)
        for number, change in enumerate(file.pending):
            if self._last and number < len(file.pending) - 1:
                _apply(content, change)
            elif change.kind == "W" and self._random.random() < self._split:
                self._in_sectors(content, change)
            elif self._random.random() < self._reached:
                _apply(content, change)
        return bytes(content)

    def _in_sectors(self, content: bytearray, change: Event) -> None:
        if self._random.random() < 0.25:  # the file has grown, and the bytes have not come
            _truncate(content, max(len(content), change.number + len(change.data)))
        begin = change.number
        while begin < change.number + len(change.data):
            end = min((begin // self._sector + 1) * self._sector, change.number + len(change.data))
            if self._random.random() < self._reached:
                first, last = begin, end
                if self._random.random() < self._torn:
                    cut = self._random.randint(begin, end)
                    first, last = self._random.choice(((begin, cut), (cut, end)))
                if first < last:
                    _change(content, first, change.data[first - change.number : last - change.number])
            begin = end
