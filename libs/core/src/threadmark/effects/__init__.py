"""Effects: a ledger of calls that change the world outside, so that no retry, resume or second worker repeats them.

A call site has a namespace of its thread for its claims and results. So an erasure, an owner, a keyring, the token of a
lease, a backup and a replicated pair treat them as they treat checkpoints.
"""

from threadmark.effects.calls import NOT_DONE, OnUnknown, Per
from threadmark.effects.effects import Effects
from threadmark.effects.listing import Restored, Undo
from threadmark.effects.table import EffectInfo, EffectState

__all__ = ["NOT_DONE", "EffectInfo", "EffectState", "Effects", "OnUnknown", "Per", "Restored", "Undo"]
