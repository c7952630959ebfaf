"""Operators' questions about a database: its soundness, its size, its contents."""
