"""Graphs whose nodes make calls once, for tests of time travel and of crashes."""

from operator import add
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from effects.places import Receiver
from threadmark import Effects, Saver
from threadmark_langgraph import Checkpointer


class State(TypedDict, total=False):
    """An order, and the receipts of its calls."""

    amount: int
    rounds: int
    receipts: Annotated[list[int], add]


class CrashError(Exception):
    """Ends a run, as the end of a process would."""


class Shop:
    """A graph that charges once in each round, and a receiver that counts."""

    def __init__(self, saver: Saver, **options: Any) -> None:
        self.receiver = Receiver()
        self.effects = Effects(saver)
        self.options = options
        self.crashes: list[str] = []
        """The nodes that are to crash, after they have made their calls."""
        self.durability: Any = None
        graph = StateGraph(State)
        graph.add_node("charge", self.charge)
        graph.add_node("ship", self.ship)
        graph.add_edge(START, "charge")
        graph.add_edge("charge", "ship")
        graph.add_conditional_edges("ship", lambda state: "charge" if state["rounds"] > 0 else END, ["charge", END])
        self.graph = graph.compile(checkpointer=Checkpointer(saver))

    def charge(self, state: State) -> dict[str, Any]:
        receipt = self.effects.once("charge", self.receiver.charge, state["amount"], **self.options)["receipt"]
        self._crash("charge")
        return {"receipts": [receipt]}

    def ship(self, state: State) -> dict[str, Any]:
        self._crash("ship")
        return {"rounds": state["rounds"] - 1}

    def _crash(self, node: str) -> None:
        if node in self.crashes:
            self.crashes.remove(node)
            raise CrashError(node)

    def run(self, config: Any, amount: int = 5, rounds: int = 1) -> list[int]:
        """Run with new input. Returns all receipts."""
        return self._receipts(
            self.graph.invoke({"amount": amount, "rounds": rounds}, config, durability=self.durability)
        )

    def go_on(self, config: Any) -> list[int]:
        """Go on from a checkpoint, or from the newest."""
        return self._receipts(self.graph.invoke(None, config, durability=self.durability))

    def before(self, node: str, config: Any) -> Any:
        """The configuration of the oldest checkpoint whose next step is a node."""
        return [each.config for each in self.graph.get_state_history(config) if each.next == (node,)][-1]

    @staticmethod
    def _receipts(state: dict[str, Any]) -> list[int]:
        return list(state["receipts"])
