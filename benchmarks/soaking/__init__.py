"""The soak: runs of LangGraph at once for minutes, the quantities that must not rise, and the rule that judges them."""
