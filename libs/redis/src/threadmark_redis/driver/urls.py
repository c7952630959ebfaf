"""URLs of Redis servers, of clusters and of Sentinels. No error shows a URL, because it may contain a password."""

import re
import socket
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from threadmark.backends import ConfigError
from threadmark_redis.driver.connecting import PARAMETERS, Address, Connecting, Kind, Servers

SCHEMES = (
    "redis",
    "rediss",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+unix",
)
"""The schemes of a single server, with and without TLS, and of the other layouts."""

_PORT, _SENTINEL_PORT = 6379, 26379

_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.%]+)\]|(?P<name>[\w.-]+))(?::(?P<port>\d{1,5}))?$")

_IGNORED = {
    "decode_responses",
    "encoding",
    "encoding_errors",
    "health_check_interval",
    "legacy_responses",
    "max_connections",
    "protocol",
    "retry_on_error",
    "retry_on_timeout",
    "socket_read_size",
    "timeout",
}
"""Parameters of redis-py's URLs about its own clients, which do not matter for the connections of a saver."""

_OF_SENTINELS = {"sentinel_username": "username", "sentinel_password": "password"}


def _flag(text: str) -> bool:
    return text.lower() not in ("0", "f", "false", "n", "no", "")


_CONVERT: dict[str, Callable[[str], Any]] = {
    "db": int,
    "socket_timeout": float,
    "socket_connect_timeout": float,
    "socket_keepalive": _flag,
    "ssl_check_hostname": _flag,
    "ssl_min_version": int,
}

_NOT_IN_URLS = {
    "credential_provider",
    "socket_keepalive_options",
    "socket_type",
    "ssl_include_verify_flags",
    "ssl_exclude_verify_flags",
}
"""Parameters that are objects: pass a client that has them in place of a URL."""


def servers_of_url(url: str) -> Servers:
    """Return the servers of a URL. Raises ConfigError if the URL is not valid."""
    scheme = url.partition("://")[0].lower()
    scheme = "redis+unix" if scheme == "unix" else scheme
    if scheme not in SCHEMES:
        _refuse("has another scheme")
    try:
        parts = urlsplit(url)
    except ValueError:
        _refuse("has no valid host")
    if parts.fragment:
        _refuse("has a # that is not written as %23")
    parameters, sentinel = _parameters(parts)
    if scheme == "redis+unix":
        return _of_socket(parts, parameters)
    tls, _, layout = scheme.partition("+")
    how: Kind = "tls" if tls == "rediss" else "tcp"
    path = unquote(parts.path).strip("/")
    service, path = _service(path) if layout == "sentinel" else ("", path)
    database = _database(path, parameters)
    connecting = Connecting(how, {**parameters, **_credentials(parts), **({"db": database} if database else {})})
    addresses = _addresses(parts, _SENTINEL_PORT if service else _PORT)
    if service:
        return Servers("sentinel", addresses, connecting, service, _of_sentinels(connecting, sentinel))
    if layout == "cluster":
        if database:
            _refuse("names a database, and a cluster has none but 0")
        return Servers("cluster", addresses, connecting)
    if len(addresses) > 1:
        _refuse("names several servers: write redis+cluster:// or redis+sentinel://")
    return Servers("single", addresses, connecting)


def _service(path: str) -> tuple[str, str]:
    """Return the Sentinels' name for the server, and the rest of the path."""
    service, _, rest = path.partition("/")
    if not service:
        _refuse("does not name the service that the Sentinels watch")
    return service, rest


def _of_socket(parts: SplitResult, parameters: dict[str, Any]) -> Servers:
    path = unquote(parts.path)
    if len(path) < 2:  # noqa: PLR2004 - "/" is no socket
        _refuse("has no path: write 'redis+unix:///run/redis.sock?db=0'")
    if not hasattr(socket, "AF_UNIX"):  # on Windows
        _refuse("names a Unix socket, and Python offers none on this system")
    return Servers("single", (Address(path, 0),), Connecting("unix", {**parameters, **_credentials(parts)}))


def _of_sentinels(connecting: Connecting, sentinel: dict[str, Any]) -> Connecting:
    """Return how to connect to Sentinels: like to their servers, without user, password and database."""
    kept = {key: value for key, value in connecting.parameters.items() if key not in ("username", "password", "db")}
    return Connecting(connecting.kind, {**kept, **sentinel})


def _parameters(parts: SplitResult) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters for connections, and those for connections to Sentinels."""
    parameters: dict[str, Any] = {}
    sentinel: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in _OF_SENTINELS:
            sentinel[_OF_SENTINELS[name]] = value
        elif name in PARAMETERS - _NOT_IN_URLS:
            try:
                parameters[name] = _CONVERT.get(name, str)(value)
            except ValueError:
                _refuse(f"gives {name} no valid value")
        elif name not in _IGNORED:
            hint = "" if "@" in parts.query else f" ({name!r})"  # text after a bare ? may be a part of a password
            _refuse(f"has a parameter that there is not{hint}: only threadmark.open reads options of the saver")
    return parameters, sentinel


def _credentials(parts: SplitResult) -> dict[str, str]:
    found = {"username": parts.username, "password": parts.password}
    return {name: unquote(text) for name, text in found.items() if text}


def _database(path: str, parameters: dict[str, Any]) -> int:
    if not path:
        return int(parameters.get("db", 0))
    if not path.isdigit():
        _refuse("has a path that is no number of a database")
    return int(path)


def _addresses(parts: SplitResult, port: int) -> tuple[Address, ...]:
    hosts = parts.netloc.rpartition("@")[2]
    return tuple(_address(host, port) for host in hosts.split(",")) if hosts else (Address("localhost", port),)


def _address(text: str, port: int) -> Address:
    found = _HOST.match(text)
    if found is None or int(found["port"] or port) not in range(1, 65536):
        _refuse("has no valid host and port")
    return Address(found["v6"] or found["name"], int(found["port"] or port))


def _refuse(problem: str) -> NoReturn:
    raise ConfigError(
        f"this Redis URL {problem}: write 'redis://user:password@host:6379/0' (rediss:// with TLS), "
        "'redis+cluster://host:6379,host:6379', 'redis+sentinel://host:26379,host:26379/service/0' or "
        "'redis+unix:///path', in the password @ as %40, / as %2F, # as %23 and % as %25"
    ) from None
