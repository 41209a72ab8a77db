"""Triggers: parse reports of deploys, with one parser for each kind of sender."""
