"""The installed release of LangGraph, and tests of behaviour that only later ones have."""

from importlib.metadata import version

import pytest

needs_sound_deltas = pytest.mark.skipif(
    tuple(map(int, version("langgraph").split(".")[:3])) < (1, 2, 13),
    reason="LangGraph before 1.2.13 reads forks of delta channels wrongly (docs/how-to/switching.md)",
)
"""For a test of forks, or changes by hand, of delta channels."""
