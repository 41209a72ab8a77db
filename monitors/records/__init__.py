"""Immutable data types that modules pass to each other. Import each type from the module that defines it."""
