"""The behaviour that every backend must have, as a suite that you run in the tests of your backend.

Describe your backend by one context manager (`Backend`). With pytest the whole suite is then

    @pytest.mark.parametrize("api", APIS)
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_conformance(case, api, tmp_path):
        run_case(case, my_backend, api, tmp_path)

and three more checks: `check_crash` (a driver that dies after every step), `check_interleavings` (two operations that
meet in every order) and `check_model` (random use, compared with dictionaries). All of them serve both APIs.

If your backend has none of the operations for replication (`threadmark.store.replica`), run `WITHOUT_REPLICATION` in
place of `CASES`.
"""

from threadmark_conformance.apis import APIS
from threadmark_conformance.backend import Backend, Opener, World, run_case
from threadmark_conformance.cases import CASES, WITHOUT_REPLICATION, Case
from threadmark_conformance.crashes import OPERATIONS, check_crash
from threadmark_conformance.interleaving import MEETINGS, check_interleavings
from threadmark_conformance.model import check_model

__all__ = [
    "APIS",
    "CASES",
    "MEETINGS",
    "OPERATIONS",
    "WITHOUT_REPLICATION",
    "Backend",
    "Case",
    "Opener",
    "World",
    "check_crash",
    "check_interleavings",
    "check_model",
    "run_case",
]
