"""Telling whether there may be envelopes in a value: ormsgpack's own types Ext and Fragment.

ormsgpack writes these without calling any hook: an Ext as the extension that it names, which may be a mark, and a
Fragment as the bytes that it holds, which may be anything. Looking at every value for them would cost more than packing
it. But each instance of a class made at run time refers to its class, so the classes' reference counts tell whether
there are instances in the process; nearly always there are none but our own marks.
"""

import gc
import sys
from collections.abc import Mapping
from sys import getrefcount
from types import ModuleType
from typing import Any

_SELDOM = 1000
"""After the first few wrong suspicions, references are counted anew once in this many: that takes milliseconds."""


class Instances:
    """Knows how many references to some classes come from the classes themselves and from names in modules.

    Any other reference is suspected to come from an instance; if the interpreter does not count as expected here, all
    are. A wrong suspicion only costs a look at the values. A missing one could let an instance in, so references that
    may come and go, such as those of local names, are never counted as known.
    """

    def __init__(self, classes: Mapping[type, tuple[Any, ...]]) -> None:
        """Watch these classes. The arguments make an instance of each. Nothing is known before `count`."""
        self.classes = tuple(classes)
        self.others = 0
        """How many references are known not to come from instances."""
        self._arguments = tuple(classes.values())
        self._own = sys.maxsize
        self._wrong_suspicions = 0

    def may_be_more(self, others: int) -> bool:
        """Whether there may be unknown instances, if there are `others` references beside those of known instances.

        The encoder counts the references itself, and asks only if there are not `self.others`.
        """
        # If they have become fewer, a module that had a name for one of the classes is gone.
        self.others = min(self.others, others)
        return others > self.others

    def were_not_found(self) -> None:
        """Take note of a wrong suspicion, and count again unless that was done recently."""
        self._wrong_suspicions += 1
        if self._wrong_suspicions in (1, 10, 100) or self._wrong_suspicions % _SELDOM == 0:
            self.count()

    def count(self) -> None:
        """Find out how many references do not come from instances."""
        before = self._references()
        samples = [cls(*arguments) for cls, arguments in zip(self.classes, self._arguments, strict=True)]
        # No local name may refer to a class here: it would be one more reference.
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
        # The same loop as in the encoder, so that its local name for a class counts in both.
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
