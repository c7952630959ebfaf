"""The kinds of value that the serializer knows, one module for each part of the type system."""
