"""Steps as exchanges with servers: to whom they are sent, where again, and how often. There is no I/O in here.

The blocking and the asyncio side share it: a `Conversation` yields exchanges and pauses, is sent what became of them,
and returns what the step is answered with. All replies of a step that is refused or lost are thrown away, and it is
sent again: a step only reads, or is a script, which does the same again.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from threadmark.errors import ConfigError
from threadmark.program import Step
from threadmark_redis.driver.connecting import Address
from threadmark_redis.driver.facts import Facts, unproven, warnings_about
from threadmark_redis.driver.failures import Failure, Lost, Refused, Retries
from threadmark_redis.driver.log import log
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import (
    Answered,
    Conversation,
    Exchange,
    Outcome,
    Pause,
    UnreachableError,
    slot_of,
    topology_of,
)
from threadmark_redis.steps import AllKeys, Command, Commands, Run

_REDIRECTIONS = 16
"""How often in a row a step is sent elsewhere at once. After that it waits before each."""

_KEYS_AT_ONCE = 1000


class Router:
    """Sends steps to the servers that have their keys, for all threads and event loops of a saver."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topology = topology_of(settings.servers)
        self._reached = False
        """Whether any server ever answered."""
        self._started = False
        self._warned: set[str] = set()

    def answer(self, step: Step, retries: Retries) -> Conversation:
        """Return what a step is answered with."""
        if not self._started:
            yield from self.start(retries)
        if isinstance(step, Run):
            return (yield from self._run(step, retries))
        if isinstance(step, Commands):
            return (yield from self._read(step.commands, retries))
        if isinstance(step, AllKeys):
            return (yield from self._all_keys(step.pattern, retries))
        raise TypeError(f"the Redis backend has no {type(step).__name__}")

    def start(self, retries: Retries) -> Conversation:
        """Greet every master: each must be as durable as the saver wants it."""
        yield from self._of_masters(lambda: self._ask_all(("PING",)), retries)
        self._started = True

    def survey(self, retries: Retries) -> Conversation:
        """Return what each master says about itself, and whether it runs scripts."""
        found = yield from self._of_masters(lambda: self._ask_all(_TRIAL), retries)
        self._started = True
        return [(answered.facts, answered.replies == [1]) for answered in found]

    def warnings(self, facts: Facts) -> list[str]:
        """Return what the user should know of a server."""
        found = warnings_about(facts, expires=self._settings.expires)
        if facts.is_cluster and self._settings.servers.layout == "single":
            found.append(f"{facts.address} is a node of a cluster: write redis+cluster:// in the URL")
        return found

    def _run(self, step: Run, retries: Retries) -> Conversation:
        rest = (len(step.keys), *step.keys, *step.args)
        ways: list[Command] = [("EVAL", step.script.text, *rest), ("EVALSHA", step.script.sha, *rest)]
        key = step.keys[0]
        change = key if step.writes else None
        (reply,) = yield from self._sent(self._slot(key), lambda: [ways[-1]], retries, change, ways.pop)
        return reply

    def _read(self, commands: Sequence[Command], retries: Retries) -> Conversation:
        by_slot: dict[int, list[int]] = {}
        for index, command in enumerate(commands):
            by_slot.setdefault(self._slot(command[1]), []).append(index)
        replies: list[Any] = [None] * len(commands)
        for slot, indexes in by_slot.items():
            found = yield from self._sent(slot, partial(_those, commands, indexes), retries)
            for index, reply in zip(indexes, found, strict=True):
                replies[index] = reply
        return replies

    def _slot(self, key: bytes | str | int) -> int:
        """Return the slot of a key, in a cluster: there each slot may move by itself, so a pipeline is of one."""
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
        """Ask all masters. Where one fails, another may have taken over: then all are asked again."""
        while True:
            try:
                return (yield from ask())
            except UnreachableError as error:
                yield Pause(retries.next_wait(error.failure, reached=self._reached))

    def _asked(self, address: Address, command: Command) -> Conversation:
        outcome = yield Exchange(address, [command])
        self._see(outcome)
        failure = outcome if not isinstance(outcome, Answered) else _first_refused(outcome.replies)
        if failure is None or (isinstance(outcome, Answered) and command == _TRIAL):
            return outcome
        self._topology.forget(address)
        raise UnreachableError(failure)

    def _sent(
        self,
        slot: int,
        commands: Callable[[], Sequence[Command]],
        retries: Retries,
        change: bytes | None = None,
        unknown_script: Callable[[], object] | None = None,
    ) -> Conversation:
        """Send commands of one slot until none is refused. Returns their replies.

        `unknown_script` is called once where the server has lost a script: `commands` then returns another way.
        """
        redirections = 0
        while True:
            try:
                address = yield from self._topology.locate(slot)
            except UnreachableError as error:
                yield Pause(retries.next_wait(error.failure, reached=self._reached))
                continue
            asked = commands()
            outcome = yield Exchange(address, asked, change)
            self._see(outcome)
            if isinstance(outcome, Answered) and self._is_redirected(outcome):
                outcome = yield from self._followed(outcome, asked, change)
            failure = self._failure(outcome)
            if failure is None:
                return outcome.replies
            if isinstance(failure, Refused):
                if failure.code == "NOSCRIPT" and unknown_script is not None:
                    unknown_script()
                    unknown_script = None
                    continue
                if failure.code == "MOVED":
                    redirections += 1
                    self._topology.moved(slot, _target(failure, address))
                    if redirections <= _REDIRECTIONS:
                        continue
            yield from self._wait(address, failure, retries)

    def _is_redirected(self, outcome: Answered) -> bool:
        """Whether a key is on its way to another node, which has to be asked for it."""
        return any(isinstance(reply, Refused) and reply.code == "ASK" for reply in outcome.replies)

    def _followed(self, outcome: Answered, asked: Sequence[Command], change: bytes | None) -> Conversation:
        """Send each command that a node has not the key of any more to the node that has it."""
        replies = list(outcome.replies)
        for index, reply in enumerate(replies):
            if isinstance(reply, Refused) and reply.code == "ASK":
                target = _target(reply, Address("", 0))
                answer = yield Exchange(target, [("ASKING",), asked[index]], change)
                self._see(answer)
                if not isinstance(answer, Answered):
                    return answer
                replies[index] = answer.replies[1]
                outcome = answer
        return outcome._replace(replies=replies)

    def _failure(self, outcome: Outcome) -> Failure | None:
        if not isinstance(outcome, Answered):
            return outcome
        return _first_refused(outcome.replies) or unproven(outcome.proofs, self._settings)

    def _wait(self, address: Address, failure: Failure, retries: Retries) -> Conversation:
        if isinstance(failure, Refused) and failure.code == "MOVED" and self._settings.servers.layout != "cluster":
            raise ConfigError(f"{address} is a node of a cluster: write redis+cluster://{address}")
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


_STAYS = {"LOADING", "BUSY", "TRYAGAIN", "UNPROVEN", "NOREPLICAS", "OOM"}
"""Refusals after which the same server is asked again."""


_TRIAL: Command = ("EVAL", "return 1", 0)
"""Whose refusal is an answer."""


def _those(commands: Sequence[Command], indexes: Sequence[int]) -> list[Command]:
    return [commands[index] for index in indexes]


def _first_refused(replies: Sequence[Any]) -> Refused | None:
    return next((reply for reply in replies if isinstance(reply, Refused)), None)


def _target(failure: Refused, asked: Address) -> Address:
    """The address that a redirection names. One without a host means the host that was asked."""
    host, _, port = failure.text.split()[-1].rpartition(":")
    return Address(host.strip("[]") or asked.host, int(port))
