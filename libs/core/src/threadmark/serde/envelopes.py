"""Whether there may be objects of classes that no packer asks about: ormsgpack's own envelopes, Ext and Fragment.

ormsgpack writes them unasked: an Ext as the extension that it says, which may be a mark, and a Fragment as the bytes
that it holds, which may be anything. Looking at every value for them costs more than packing it. But an object of a
class made at run time holds a reference to its class, so the count of these tells whether there are any objects of it
in the process; nearly always there are none but our own marks.
"""

import gc
import sys
from collections.abc import Mapping
from sys import getrefcount
from types import ModuleType
from typing import Any

# Counting takes milliseconds, a suspicion costs a look at one value: after the first few, once in so many.
_SELDOM = 1000


class Instances:
    """Knows how many references to some classes are not those of their instances, but their own or modules' names.

    Any other reference is suspected to be an instance, and where the interpreter does not count as is expected here,
    all are. A wrong suspicion costs a look at the values, never a wrong answer; one too few could let an instance in,
    so what may come and go (a local name, say) is never counted on.
    """

    def __init__(self, classes: Mapping[type, tuple[Any, ...]]) -> None:
        """Watch these classes; the arguments make an instance of each. Nothing is known before `count`."""
        self.classes = tuple(classes)
        self.others = 0
        """How many references are expected that are not those of instances."""
        self._arguments = tuple(classes.values())
        self._own = sys.maxsize
        self._wrong_suspicions = 0

    def may_be_more(self, others: int) -> bool:
        """Whether there may be more instances than known ones, of which this many references are not.

        The encoder counts the references itself, and asks only if there are not as many as expected.
        """
        # Where they have become fewer, a module that had a class under a name is gone.
        self.others = min(self.others, others)
        return others > self.others

    def were_not_found(self) -> None:
        """The suspicion was wrong; count again, if it was not done lately."""
        self._wrong_suspicions += 1
        if self._wrong_suspicions in (1, 10, 100) or self._wrong_suspicions % _SELDOM == 0:
            self.count()

    def count(self) -> None:
        """Find out how many references are not those of instances."""
        before = self._references()
        samples = [cls(*arguments) for cls, arguments in zip(self.classes, self._arguments, strict=True)]
        # No name may be left for a class: it would be one more reference.
        found = gc.get_referrers(*self.classes)
        references = self._references()
        instances = {id(each) for each in found if type(each) in self.classes}
        if references < before + len(samples) or not instances.issuperset(map(id, samples)):
            self.others = 0
            return
        of_modules = self._names_in_modules(found)
        self._own = min(self._own, references - len(instances) - of_modules)
        self.others = self._own + of_modules

    def _references(self) -> int:
        # As in the encoder, so that the loop's own name for a class counts in both.
        found = 0
        for cls in self.classes:
            found += getrefcount(cls)
        return found

    def _names_in_modules(self, referrers: list[Any]) -> int:
        namespaces = {id(vars(module)) for module in [*sys.modules.values()] if isinstance(module, ModuleType)}
        return sum(
            any(item is cls for cls in self.classes)
            for each in referrers
            if type(each) is dict and id(each) in namespaces
            for item in each.values()
        )
