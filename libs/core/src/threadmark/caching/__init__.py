"""Bytes that never change, kept near: a saver that looks into a cache before it asks its database for segments."""
