"""Frozen records: every noun that modules pass to each other. Import each from the module that defines it."""
