"""Triggers: parse reports of deploys. Each kind of sender has its own parser."""
