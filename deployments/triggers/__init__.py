"""Triggers: parse deploy reports. Each kind of sender has its own parser."""
