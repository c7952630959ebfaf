"""Threadmark: checkpoint savers whose put stores what changed."""
