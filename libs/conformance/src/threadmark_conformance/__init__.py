"""The behaviour that every backend has, as a suite that a backend's own tests run.

A backend is described by one context manager (`Backend`); with pytest the whole suite is then

    @pytest.mark.parametrize("face", FACES)
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_conformance(case, face, tmp_path):
        run_case(case, my_backend, face, tmp_path)

and beside it `check_crash` (a driver that dies after every step), `check_interleavings` (two operations that meet in
every order) and `check_model` (random use, compared with dictionaries). All of them serve both faces.
"""

from threadmark_conformance.backend import Backend, Opener, World, run_case
from threadmark_conformance.cases import CASES, Case
from threadmark_conformance.crashes import OPERATIONS, check_crash
from threadmark_conformance.faces import FACES
from threadmark_conformance.interleaving import MEETINGS, check_interleavings
from threadmark_conformance.model import check_model

__all__ = [
    "CASES",
    "FACES",
    "MEETINGS",
    "OPERATIONS",
    "Backend",
    "Case",
    "Opener",
    "World",
    "check_crash",
    "check_interleavings",
    "check_model",
    "run_case",
]
