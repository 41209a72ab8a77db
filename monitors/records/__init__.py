"""Immutable data types that modules pass to each other. Import each of them from its own module."""
