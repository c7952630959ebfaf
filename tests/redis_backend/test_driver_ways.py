"""Other ways to a server than plain TCP: TLS, with the authority that signed its certificate, and its Unix socket."""

import asyncio
import datetime
import ipaddress
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ports import free_port
from redis_backend.drivers import adding, driver_of, members
from redis_backend.processes import FORGETFUL, HOST, RedisProcess
from threadmark import TransientStoreError
from threadmark_redis.driver import RedisDriver

KEY = b"{one}"


def _certify(folder: Path) -> tuple[Path, Path]:
    """Write a certificate that has signed itself for `HOST`, and its key. Returns both files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "threadmark tests")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(*form))
    return files


@pytest.fixture(scope="module")
def certificate() -> Iterator[Path]:
    """The certificate of the server; its key is next to it."""
    with tempfile.TemporaryDirectory() as folder:
        yield _certify(Path(folder))[0]


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[RedisProcess]:
    """A server that also listens with TLS and on a socket."""
    settings = {
        **FORGETFUL,
        "tls-port": str(free_port()),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(certificate.with_name("key.pem")),
        "tls-ca-cert-file": str(certificate),
        "tls-auth-clients": "no",
        "unixsocket": str(certificate.with_name("redis.sock")),
    }
    with RedisProcess(settings) as process:
        yield process.start()


def _use(driver: RedisDriver) -> None:
    """Use both APIs, twice, so that connections are used again."""

    async def body() -> None:
        assert await driver.arun(adding(KEY, 1)) == 0
        assert await driver.arun(members(KEY)) == [[b"1"]]

    driver.run(adding(KEY, 1))
    assert driver.run(members(KEY)) == [[b"1"]]
    asyncio.run(body())
    driver.close()


def test_tls_is_used_with_the_authority_of_the_url(server: RedisProcess, certificate: Path) -> None:
    port = int(str(server.client.config_get("tls-port")["tls-port"]))
    _use(driver_of(f"rediss://{HOST}:{port}?ssl_ca_certs={certificate}"))
    client = redis.Redis(host=HOST, port=port, ssl=True, ssl_ca_certs=str(certificate))
    _use(driver_of(client))
    client.close()


def test_a_server_that_nobody_vouches_for_is_refused_at_once(server: RedisProcess) -> None:
    port = server.client.config_get("tls-port")["tls-port"]
    driver = driver_of(f"rediss://{HOST}:{port}", timeout=60)
    with pytest.raises(TransientStoreError, match="certificate"):
        driver.run(adding(KEY, 1))
    with pytest.raises(TransientStoreError, match="certificate"):
        asyncio.run(driver.arun(adding(KEY, 1)))
    driver.close()


def test_a_unix_socket_is_used(server: RedisProcess, certificate: Path) -> None:
    assert server.client.ping()
    socket = certificate.with_name("redis.sock")
    _use(driver_of(f"redis+unix://{socket}"))
    client = redis.Redis(unix_socket_path=str(socket))
    _use(driver_of(client))
    client.close()
