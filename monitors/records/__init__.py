"""Frozen records: the data types that modules pass to each other. Import each record from its module."""
