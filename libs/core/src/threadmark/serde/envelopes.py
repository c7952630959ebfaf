"""Whether there may be objects of a class that no packer asks about: ormsgpack's own envelopes, Ext and Fragment.

ormsgpack writes them unasked: an Ext as the extension that it says, which may be a mark, and a Fragment as the bytes
that it holds, which may be anything. Looking at every value for them costs more than packing it. But an object of a
class made at run time holds a reference to its class, so the count of these tells whether there are any objects of it
in the process; nearly always there are none but our own marks.
"""

import gc
import sys
from sys import getrefcount
from types import ModuleType
from typing import Any

# Counting takes milliseconds, a suspicion costs a look at one value: after the first few, once in so many.
_SELDOM = 1000


class Instances:
    """Knows how many references to a class are not those of its instances: its own, and those of modules' names.

    Any other reference is suspected to be an instance, and where the interpreter does not count as is expected here,
    all are. A wrong suspicion costs a look at the values, never a wrong answer; one too few could let an instance in,
    so what may come and go (a local name, say) is never counted on.
    """

    def __init__(self, cls: type, arguments: tuple[Any, ...]) -> None:
        """Watch a class; the arguments make an instance of it. Nothing is known before `count`."""
        self._class = cls
        self._arguments = arguments
        self._own = sys.maxsize
        self._others = 0
        self._wrong_suspicions = 0

    def may_be_more_than(self, known: int) -> bool:
        """Whether there may be more instances than those."""
        # Written out at each place: a name for the class, or a call, would be one more reference.
        others = getrefcount(self._class) - known
        if others == self._others:
            return False
        self._others = min(self._others, others)
        return others > self._others

    def were_not_found(self) -> None:
        """The suspicion was wrong; count again, if it was not done lately."""
        self._wrong_suspicions += 1
        if self._wrong_suspicions in (1, 10, 100) or self._wrong_suspicions % _SELDOM == 0:
            self.count()

    def count(self) -> None:
        """Find out how many references are not those of instances."""
        before, sample = getrefcount(self._class), self._class(*self._arguments)
        found = gc.get_referrers(self._class)
        references = getrefcount(self._class)
        instances = [each for each in found if type(each) is self._class]
        if references <= before or not any(each is sample for each in instances):
            self._others = 0
            return
        of_modules = self._names_in_modules(found)
        self._own = min(self._own, references - len(instances) - of_modules)
        self._others = self._own + of_modules

    def _names_in_modules(self, referrers: list[Any]) -> int:
        namespaces = {id(vars(module)) for module in [*sys.modules.values()] if isinstance(module, ModuleType)}
        return sum(
            item is self._class
            for each in referrers
            if type(each) is dict and id(each) in namespaces
            for item in each.values()
        )
