"""Steps as exchanges with servers: the target of each, redirections and repetitions. There is no I/O in here.

The blocking and the asyncio side share it: a `Conversation` yields exchanges and pauses, receives their outcomes, and
returns the answer of the step. If a step is refused or lost, all its replies are thrown away and it is sent again: a
step either only reads, or is a script that has the same effect a second time.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from threadmark.backends import Outage, Pause, Step
from threadmark_redis.columns import to_bytes
from threadmark_redis.driver.connecting import Address
from threadmark_redis.driver.facts import Facts, unproven, warnings_about
from threadmark_redis.driver.failures import Failure, Lost, Refused, Retries
from threadmark_redis.driver.log import log
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import (
    ASKING,
    Answered,
    Conversation,
    Exchange,
    Outcome,
    UnreachableError,
    slot_of,
    topology_of,
)
from threadmark_redis.formats import KnownFormat
from threadmark_redis.steps import AllKeys, Command, Commands, Run, RunEach, Script

_REDIRECTIONS = 16
"""How many redirections in a row are followed at once. After that there is a pause before each."""

_KEYS_AT_ONCE = 1000

Call = tuple[Sequence[bytes], Sequence[bytes | int]]
"""The keys and the arguments of a script."""


class Router:
    """Sends steps to the servers that have their keys, for all threads and event loops of a saver."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.outage = Outage(log, settings)
        self._topology = topology_of(settings.servers)
        self._reached = False
        """Whether any server ever answered."""
        self._started = False
        self._warned: set[str] = set()
        self.format = KnownFormat(settings.prefix, settings, is_kept=not settings.may_be_evicted)

    def retries(self) -> Retries:
        """Return the retries of a new operation."""
        return Retries(self._settings, self.outage)

    def answer(self, step: Step, retries: Retries) -> Conversation:
        """Return the answer to a step."""
        if not self._started:
            yield from self.start(retries)
        if self.format.is_due():
            yield from self._read_format(retries)
        if isinstance(step, Run):
            return (yield from self._run(step, retries))
        if isinstance(step, RunEach):
            return (yield from self._run_each(step, retries))
        if isinstance(step, Commands):
            return (yield from self._read(step.commands, retries))
        if isinstance(step, AllKeys):
            return (yield from self._all_keys(step.pattern, retries))
        raise TypeError(f"the Redis backend has no {type(step).__name__}")

    def start(self, retries: Retries) -> Conversation:
        """Greet every master: each must be as durable as the saver requires."""
        yield from self._of_masters(lambda: self._ask_all(("PING",)), retries)
        self._started = True
        if self.format.is_due():
            yield from self._read_format(retries)

    def survey(self, retries: Retries) -> Conversation:
        """Return each master's facts about itself, and whether it runs scripts."""
        # Some refuse a script without a key.
        trial: Command = ("EVAL", _TRIAL, 1, to_bytes(self._settings.prefix) + b"trial")
        found = yield from self._of_masters(lambda: self._ask_all(trial), retries)
        self._started = True
        return [(answered.facts, _has_run(answered.replies[0])) for answered in found]

    def warnings(self, facts: Facts) -> list[str]:
        """Return warnings about a server."""
        found = [] if self._settings.may_be_evicted else warnings_about(facts, expires=self._settings.expires)
        if facts.is_cluster and self._settings.servers.layout == "single":
            found.append(f"{facts.address} is a node of a cluster: write redis+cluster:// in the URL")
        return found

    def _run(self, step: Run, retries: Retries) -> Conversation:
        slot = self._slot(step.keys[0])
        call = step.keys, step.args
        batch = _Batch([0], [_by_name(step.script, call)], [_by_text(step.script, call)])
        (reply,) = yield from self._sent({slot: batch}, retries, step.keys[0] if step.writes else None)
        return reply

    def _run_each(self, step: RunEach, retries: Retries) -> Conversation:
        batches: dict[int, _Batch] = {}
        for index, call in enumerate(step.calls):
            batch = batches.setdefault(self._slot(call[0][0]), _Batch([], [], []))
            # All have the text then: the server may lose the script again before the last call, and while a slot of a
            # cluster moves, some are sent to a node that has not got the first one.
            batch.instead.append(_by_text(step.script, call))
            batch.add(index, _by_name(step.script, call))
        return (yield from self._sent(batches, retries))

    def _read(self, commands: Sequence[Command], retries: Retries) -> Conversation:
        batches: dict[int, _Batch] = {}
        for index, command in enumerate(commands):
            batches.setdefault(self._slot(command[1]), _Batch([], [], [])).add(index, command)
        return (yield from self._sent(batches, retries))

    def _read_format(self, retries: Retries) -> Conversation:
        asked = time.monotonic()
        (columns,) = yield from self._read([self.format.asking], retries)
        self.format.note(asked, columns)

    def _slot(self, key: bytes | str | int) -> int:
        """Return the slot of a key in a cluster, in which each may move by itself. A single server has one for all."""
        if self._settings.servers.layout != "cluster":
            return 0
        return slot_of(key if isinstance(key, bytes) else str(key).encode())

    def _all_keys(self, pattern: bytes, retries: Retries) -> Conversation:
        return list((yield from self._of_masters(lambda: self._scan_all(pattern), retries)))

    def _scan_all(self, pattern: bytes) -> Conversation:
        found: set[bytes] = set()
        for address in (yield from self._topology.masters()):
            cursor = None
            while cursor != b"0":
                command = ("SCAN", cursor or b"0", "MATCH", pattern, "COUNT", _KEYS_AT_ONCE)
                answered = yield from self._asked(address, command)
                cursor, keys = answered.replies[0]
                found.update(keys)
        return found

    def _ask_all(self, command: Command) -> Conversation:
        found = []
        for address in (yield from self._topology.masters()):
            found.append((yield from self._asked(address, command)))  # noqa: PERF401 - it yields
        return found

    def _of_masters(self, ask: Callable[[], Conversation], retries: Retries) -> Conversation:
        """Ask all masters. If one fails, another may have taken over: then all are asked again."""
        while True:
            try:
                return (yield from ask())
            except UnreachableError as error:
                yield Pause(retries.next_wait(error.failure, reached=self._reached))

    def _asked(self, address: Address, command: Command) -> Conversation:
        outcome = yield from self._topology.exchange(Exchange(address, [command]))
        self._see(outcome)
        failure = outcome if not isinstance(outcome, Answered) else _first_refused(outcome.replies)
        if failure is None or (isinstance(outcome, Answered) and _TRIAL in command):
            return outcome
        if isinstance(failure, Lost) or failure.code not in _STAYS:
            self._topology.forget(address)
        raise UnreachableError(failure)

    def _sent(self, batches: dict[int, "_Batch"], retries: Retries, change: bytes | None = None) -> Conversation:
        """Send the commands of some slots until none is refused. Returns their replies in the order of the step."""
        replies: dict[int, Any] = {}
        redirections = 0
        while batches:
            if change is not None:  # before each attempt, because a server may have been away for long
                if self.format.is_due():
                    yield from self._read_format(retries)
                self.format.expect(writes=True)
            failed: tuple[Address, Failure] | None = None
            try:
                slots_by_address = yield from self._addresses_of(batches)
            except UnreachableError as error:
                yield Pause(retries.next_wait(error.failure, reached=self._reached))
                continue
            for address, slots in slots_by_address.items():
                asked = [command for slot in slots for command in batches[slot].commands]
                failures = self.outage.failures
                outcome = yield from self._topology.exchange(Exchange(address, asked, change))
                self._see(outcome)
                outcome = yield from self._followed(outcome, asked, change)
                failure = self._sort(outcome, address, {slot: batches[slot] for slot in slots}, replies)
                failed = (address, failure) if failure is not None else failed
                if failure is None and self.outage.is_on:
                    self.outage.succeeded(failures)
            batches = {slot: batch for slot, batch in batches.items() if not batch.is_done}
            if failed is not None:
                redirections += 1
                if not self._is_redirection(failed[1]) or redirections > _REDIRECTIONS:
                    yield from self._wait(*failed, retries)
        return [replies[index] for index in sorted(replies)]

    def _sort(
        self, outcome: Outcome, address: Address, batches: Mapping[int, "_Batch"], replies: dict[int, Any]
    ) -> Failure | None:
        """Note which batches are done, and their replies. Returns the failure to wait for, None if there is none."""
        if not isinstance(outcome, Answered):
            return outcome
        missing = unproven(outcome.proofs, self._settings)
        rest = iter(outcome.replies)
        waits: Failure | None = None
        for slot, batch in batches.items():
            found = list(islice(rest, len(batch.commands)))
            failure = _first_refused(found) or missing
            if failure is None:
                replies.update(zip(batch.indexes, found, strict=True))
                batch.is_done = True
            elif failure.code == "NOSCRIPT" and batch.instead:
                batch.commands, batch.instead = batch.instead, []
            else:
                if self._is_redirection(failure):
                    self._topology.moved(slot, _target(failure, address))
                waits = failure
        return waits

    def _is_redirection(self, failure: Failure) -> bool:
        """Return whether a cluster names another node to ask at once."""
        clustered = self._settings.servers.layout == "cluster"
        return clustered and isinstance(failure, Refused) and failure.code == "MOVED"

    def _addresses_of(self, slots: Iterable[int]) -> Conversation:
        """Return the servers of these slots, each with its slots."""
        found: dict[Address, list[int]] = {}
        for slot in slots:
            address = yield from self._topology.locate(slot)
            found.setdefault(address, []).append(slot)
        return found

    def _followed(self, outcome: Outcome, asked: Sequence[Command], change: bytes | None) -> Conversation:
        """Send each command whose key is moving to the node that the first one named."""
        if not isinstance(outcome, Answered):
            return outcome
        for index, reply in enumerate(outcome.replies):
            if isinstance(reply, Refused) and reply.code == "ASK":
                answer = yield Exchange(_target(reply, Address("", 0)), [ASKING, asked[index]], change)
                self._see(answer)
                if not isinstance(answer, Answered):
                    return answer
                followed = list(outcome.replies)
                followed[index] = answer.replies[1]
                outcome = answer._replace(replies=followed)
        return outcome

    def _wait(self, address: Address, failure: Failure, retries: Retries) -> Conversation:
        if isinstance(failure, Lost) or failure.code not in _STAYS:
            self._topology.forget(address)
        yield Pause(retries.next_wait(failure, reached=self._reached))

    def _see(self, outcome: Outcome) -> None:
        if isinstance(outcome, Lost):
            return
        self._reached = True
        if isinstance(outcome, Answered) and outcome.facts is not None and outcome.facts.address not in self._warned:
            self._warned.add(outcome.facts.address)
            for warning in self.warnings(outcome.facts):
                log.note(logging.WARNING, "%s: %s", str(self._settings), warning)


_STAYS = {"LOADING", "BUSY", "TRYAGAIN"}
"""Refusals after which the same server is asked again. One that lacks replicas may have been replaced."""


@dataclass(slots=True)
class _Batch:
    """The commands of one slot, and the places of their replies."""

    indexes: list[int]
    commands: list[Command]
    instead: list[Command]
    """Commands to send if the server has lost a script, as by a restart or a failover. They are tried once."""
    is_done: bool = False

    def add(self, index: int, command: Command) -> None:
        self.indexes.append(index)
        self.commands.append(command)


def _by_name(script: Script, call: Call) -> Command:
    return ("EVALSHA", script.sha, len(call[0]), *call[0], *call[1])


def _by_text(script: Script, call: Call) -> Command:
    return ("EVAL", script.text, len(call[0]), *call[0], *call[1])


_TRIAL = "return 1"
"""A script whose refusal is an answer, too."""


def _has_run(reply: Any) -> bool:
    """Return whether a server runs scripts. A redirection of a cluster's node counts as yes."""
    return reply == 1 or (isinstance(reply, Refused) and reply.code == "MOVED")


def _first_refused(replies: Sequence[Any]) -> Refused | None:
    return next((reply for reply in replies if isinstance(reply, Refused)), None)


def _target(failure: Refused, asked: Address) -> Address:
    """Return the address that a redirection names. One without a host means the host that was asked."""
    host, _, port = failure.text.split()[-1].rpartition(":")
    return Address(host.strip("[]") or asked.host, int(port))
