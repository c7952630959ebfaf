"""The kinds of value the serializer knows, one module for each corner of the type system."""
