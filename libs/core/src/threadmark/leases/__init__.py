"""Leases: one writer of a thread at a time; a late writer gets an error."""

from threadmark.leases.lease import Lease

__all__ = ["Lease"]
