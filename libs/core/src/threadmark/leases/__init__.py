"""Leases: one writer at a time, and the late ones find out."""

from threadmark.leases.lease import Lease

__all__ = ["Lease"]
