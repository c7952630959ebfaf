"""The `config` of a conversation: a thread, perhaps whose it is, and perhaps the run that works on it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from threadmark.config import as_thread_id, parse_config
from threadmark.errors import ConfigError
from threadmark.model import MAPPING
from threadmark.names import THREAD_ID_BYTES, check_length
from threadmark.saver.arguments import given_run
from threadmark.saver.context import SaverContext
from threadmark.saver.thread_arguments import given_owner

ConversationConfig = Mapping[str, Any]
"""`{"thread_id": ..., "user_id": ..., "run_id": ..., "lease_token": ...}`, of which only the thread_id is needed. That
of a run, which has these under "configurable", will do as well."""


class Conversation(NamedTuple):
    """Which conversation is meant."""

    context: SaverContext
    """That of the user, where one is named: only the threads of this user are there."""
    thread_id: str
    run_id: str | None
    lease_token: int | None

    def metadata(self) -> dict[str, Any]:
        """What is stored beside a message or a state."""
        return {} if self.run_id is None else {"run_id": self.run_id}


def given_conversation(context: SaverContext, config: ConversationConfig) -> Conversation:
    """Check a config. Raises ConfigError where it names no thread, or another owner than the saver is a view of."""
    fields = _fields(config)
    thread_id = as_thread_id(fields.get("thread_id"))
    check_length(thread_id, THREAD_ID_BYTES, "thread_id")
    run_id = fields.get("run_id")
    token = parse_config({"configurable": {"thread_id": thread_id, "lease_token": fields.get("lease_token")}})
    return Conversation(
        _of_user(context, fields), thread_id, None if run_id is None else given_run(run_id), token.lease_token
    )


def given_user(context: SaverContext, config: ConversationConfig | None) -> SaverContext:
    """Return the context of the user that a config names, which need not name a thread."""
    return context if config is None else _of_user(context, _fields(config))


def _fields(config: ConversationConfig) -> Mapping[str, Any]:
    if isinstance(config, MAPPING):
        configurable = config.get("configurable", config)
        if isinstance(configurable, MAPPING):
            if configurable is not config:
                _expect_none_beside(config)
            return configurable
    raise ConfigError('a conversation is named by a dictionary: {"thread_id": ..., "user_id": ..., "run_id": ...}')


def _expect_none_beside(config: ConversationConfig) -> None:
    """Raise ConfigError for what is given beside "configurable": a user that is overlooked is every user.

    A run's configuration has a `run_id` of its own there.
    """
    for name in ("thread_id", "user_id", "lease_token"):
        if name in config:
            raise ConfigError(
                f'the config has {name!r} beside "configurable", where nobody looks for it: put it inside'
            )


def _of_user(context: SaverContext, fields: Mapping[str, Any]) -> SaverContext:
    user = fields.get("user_id")
    if user is None:
        return context
    return context.of_owner(given_owner(user if isinstance(user, str) else as_thread_id(user)))
