"""The suite's odd calls reach every argument of every method, and are the same calls whenever they are made."""

import inspect

from threadmark import Saver
from threadmark.model import ThreadFilter
from threadmark_conformance.odd_calls import all_odd_calls, odd_calls, valid_arguments

NO_ARGUMENTS = {"setup", "has_only_langgraph_data", "has_tables", "list_checkpoint_refs", "list_orphan_writes", "close"}
ELSEWHERE = {
    "reencrypt": "only sealed stores have it",
    "upgrade": "it has one flag, to which releases/test_savers.py gives odd values",
    "with_serde": "it takes a serializer",
    "without_classes": "it returns a saver, and takes nothing",
    "lease": "it returns a lease, which cases of its own give odd arguments",
    "for_owner": "it returns a saver; cases of its own give it odd owners",
    "transaction": "it returns a transaction, and takes nothing",
    "within": "it returns a saver; transactions/test_within.py gives it odd connections",
}
BUT = {
    ("get_next_version", "channel"): "it is ignored",
    ("extract", "default"): "it is returned",
    **{(name, "progress"): "what it raises is passed on" for name in ("prune", "apply_retention", "verify", "stats")},
}


def test_every_argument_of_every_method_is_given_odd_values() -> None:
    usual = valid_arguments("thread")
    methods = {name for name, _ in inspect.getmembers(Saver, inspect.isfunction) if name[0] != "_"}
    blocking = {name for name in methods if not (name.startswith("a") and name[1:] in methods)}
    assert set(usual) == blocking - NO_ARGUMENTS - ELSEWHERE.keys()
    for method, arguments in usual.items():
        parameters = set(inspect.signature(getattr(Saver, method)).parameters) - {"self"}
        if "filters" in parameters:
            parameters = (parameters - {"filters"}) | ThreadFilter.__annotations__.keys()
        assert set(arguments) == parameters - {name for of, name in BUT if of == method}
    changed = {(call.method, path) for call in all_odd_calls() for path, _, _ in call.changes}
    assert changed >= {(method, (name,)) for method, arguments in usual.items() for name in arguments}


def test_the_same_seed_makes_the_same_calls() -> None:
    assert [str(call) for call in odd_calls(300, seed=3)] == [str(call) for call in odd_calls(300, seed=3)]
    assert [str(call) for call in odd_calls(300, seed=3)] != [str(call) for call in odd_calls(300, seed=4)]
    assert len(odd_calls(300)) == 300
