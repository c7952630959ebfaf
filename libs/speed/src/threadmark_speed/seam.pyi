from collections.abc import Callable
from typing import Any

def switch(on: bool) -> bool: ...

class Counterpart:
    compiled: Callable[..., Any]
    reference: Callable[..., Any]
    is_whole: bool
    def __init__(self, compiled: Callable[..., Any], reference: Callable[..., Any], is_whole: bool) -> None: ...
    def __call__(self, *args: Any, **named: Any) -> Any: ...
