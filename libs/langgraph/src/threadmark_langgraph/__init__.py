"""Threadmark for LangGraph."""

from threadmark_langgraph.values import register_values

__all__ = ["register_values"]
