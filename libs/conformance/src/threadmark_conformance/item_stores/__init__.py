"""The behaviour of stores of items, as a suite for any `BaseStore` of LangGraph, and one for Threadmark's.

With pytest, the whole suite for a store of yours is

    @asynccontextmanager
    async def my_store(folder, api, ttl):
        async with MyStore(folder / "items.db", ttl=ttl) as store:
            yield store

    @pytest.mark.parametrize("api", APIS)
    @pytest.mark.parametrize("case", STORE_CASES, ids=str)
    def test_my_store(case, api, tmp_path):
        run_store_case(case, my_store, api, tmp_path)

`WITHOUT_TTL` is for a store whose items do not expire. `OWN_CASES` are about a Threadmark backend: `run_own_case` takes
the `Backend` that you describe for the suite of savers, and `over_savers` makes of it what `run_store_case` needs.
"""

from threadmark_conformance.apis import APIS
from threadmark_conformance.item_stores.cases import OWN_CASES, STORE_CASES, WITHOUT_TTL, StoreCase
from threadmark_conformance.item_stores.own_worlds import OwnWorld, over_savers, run_own_case
from threadmark_conformance.item_stores.worlds import Asked, OpenStore, StoreWorld, run_store_case

__all__ = [
    "APIS",
    "OWN_CASES",
    "STORE_CASES",
    "WITHOUT_TTL",
    "Asked",
    "OpenStore",
    "OwnWorld",
    "StoreCase",
    "StoreWorld",
    "over_savers",
    "run_own_case",
    "run_store_case",
]
