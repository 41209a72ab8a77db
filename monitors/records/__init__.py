"""Frozen records: every noun that crosses a border. Import each from the module that defines it."""
