"""The addresses of servers and the parameters of connections to them, for both APIs.

A saver opens its own connections, even if you pass a client or a pool: it takes their arguments. So one saver serves
both APIs, any event loop and the children of forks, and never gets a reply that was meant for the client.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["tcp", "tls", "unix"]
Layout = Literal["single", "cluster", "sentinel"]


class Address(NamedTuple):
    """A server. For a Unix socket the host is its path, and the port 0."""

    host: str
    port: int

    def __str__(self) -> str:
        if not self.port:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Connecting(NamedTuple):
    """How a connection is opened, at any address: the kind, and parameters of redis-py's connections."""

    kind: Kind
    parameters: Mapping[str, Any]

    def __repr__(self) -> str:
        """Name the parameters only: error trackers show the variables of a frame, and one value is the password."""
        return f"<Connecting by {self.kind}, with {', '.join(self.parameters) or 'no parameters'}>"

    def arguments(self, address: Address) -> dict[str, Any]:
        """Return the arguments for a connection of redis-py to this address, without its `retry`.

        With RESP2 replies have one shape on every release of a server, and there are no unrequested messages.
        """
        address_options = (
            {"path": address.host} if self.kind == "unix" else {"host": address.host, "port": address.port}
        )
        alive: dict[str, Any] = {} if self.kind == "unix" else {"socket_keepalive": True}
        return {**DEFAULTS, **alive, **self.parameters, **address_options, "protocol": 2, "decode_responses": False}


DEFAULTS = {"socket_timeout": 10.0, "socket_connect_timeout": 5.0}
"""Parameters with defaults, so that the saver never waits for a reply or a connection without end."""

PARAMETERS = {
    "db",
    "username",
    "password",
    "credential_provider",
    "client_name",
    "socket_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "socket_keepalive_options",
    "socket_type",
    "ssl_keyfile",
    "ssl_certfile",
    "ssl_cert_reqs",
    "ssl_ca_certs",
    "ssl_ca_data",
    "ssl_ca_path",
    "ssl_check_hostname",
    "ssl_password",
    "ssl_min_version",
    "ssl_ciphers",
    "ssl_include_verify_flags",
    "ssl_exclude_verify_flags",
}
"""The parameters of redis-py's connections about connecting. Others are about a client's use of replies."""


class Servers(NamedTuple):
    """The servers of a saver: one server, a cluster's nodes, or the Sentinels that know the server's address."""

    layout: Layout
    addresses: tuple[Address, ...]
    connecting: Connecting
    service: str = ""
    """The Sentinels' name for the server."""
    sentinels: Connecting | None = None
    """How connections to the Sentinels are opened."""

    def __str__(self) -> str:
        addresses = ",".join(map(str, self.addresses))
        if self.layout == "sentinel":
            return f"Redis service={self.service} sentinels={addresses}{self._database()}"
        return f"Redis {'cluster ' if self.layout == 'cluster' else ''}{addresses}{self._database()}"

    def _database(self) -> str:
        database = self.connecting.parameters.get("db")
        return f" db={database}" if database else ""
