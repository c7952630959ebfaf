"""Whether there may be objects of a class that no packer asks about: ormsgpack's own envelopes, Ext and Fragment.

ormsgpack writes them unasked: an Ext as the extension that it says, which may be a mark, and a Fragment as the bytes
that it holds, which may be anything. Looking at every value for them costs more than packing it. But an object of a
class made at run time holds a reference to its class, so the count of these tells whether there are any objects of it
in the process; nearly always there are none but our own marks.
"""

import gc
from sys import getrefcount
from typing import Any

# Counting takes milliseconds, a suspicion costs a look at one value: after the first few, once in so many.
_SELDOM = 1000


class Instances:
    """Knows how many references to a class are not those of its instances.

    Until that has been found out it is taken for none, so that there always seem to be instances; where the
    interpreter does not count as is expected here, it stays so. A wrong suspicion costs a look at the values, never a
    wrong answer.
    """

    def __init__(self, cls: type, arguments: tuple[Any, ...]) -> None:
        """Watch a class; the arguments make an instance of it."""
        self._class = cls
        self._arguments = arguments
        self._others = 0
        self._wrong_suspicions = 0

    def may_be_more_than(self, known: int) -> bool:
        """Whether there may be more instances than those."""
        # Written out at each place: a name for the class, or a call, would be one more reference.
        others = getrefcount(self._class) - known
        if others == self._others:
            return False
        # Where they have become fewer, a module that had the class under a name is gone.
        self._others = min(self._others, others)
        return others > self._others

    def were_not_found(self) -> None:
        """The suspicion was wrong; count again, if it was not done lately."""
        self._wrong_suspicions += 1
        if self._wrong_suspicions in (1, 10, 100) or self._wrong_suspicions % _SELDOM == 0:
            self._others = self._count_others()

    def _count_others(self) -> int:
        before, sample = getrefcount(self._class), self._class(*self._arguments)
        instances = [each for each in gc.get_referrers(self._class) if type(each) is self._class]
        references = getrefcount(self._class)
        is_counted = references > before and any(each is sample for each in instances)
        return references - len(instances) if is_counted else 0
