"""The ports of the tests' servers."""

from pathlib import Path

from children import child, finished, line_from
from ports import AT_ONCE, free_port, reserve

_OTHER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ports import free_port
print(free_port(), flush=True)
input()
"""

_FORK = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ports import free_port
print(free_port(), flush=True)
if os.fork():
    os.wait()
else:
    print(free_port(), flush=True)
"""


def _range_of(port: int) -> range:
    first = port - port % AT_ONCE
    return range(first, first + AT_ONCE)


def test_a_process_has_its_ports_to_itself() -> None:
    other = child(_OTHER, Path(__file__).parent)
    theirs = _range_of(int(line_from(other.stdout)))
    assert not reserve(theirs)
    assert free_port() not in theirs
    other.communicate("\n")


def test_the_child_of_a_fork_has_ports_of_its_own() -> None:
    mine, its = map(int, finished(child(_FORK, Path(__file__).parent)).split())
    assert its not in _range_of(mine)


_MANY = """
import socket, sys
sys.path.insert(0, sys.argv[1])
from ports import free_port
for _ in range(int(sys.argv[2])):
    with socket.create_server(("127.0.0.1", free_port())) as server:
        print(server.getsockname()[1])
        with socket.create_connection(server.getsockname()):
            server.accept()[0].close()  # the kernel remembers the connection for a minute
"""


def test_a_port_is_given_again_only_after_all_others() -> None:
    given = list(map(int, finished(child(_MANY, Path(__file__).parent, 6 * AT_ONCE)).split()))
    assert len(given) == 6 * AT_ONCE
    assert len(set(given[: 4 * AT_ONCE])) == 4 * AT_ONCE
