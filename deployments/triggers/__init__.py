"""Triggers: what reports that something was deployed. One parser for each kind of sender."""
