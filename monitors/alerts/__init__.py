"""Builds redacted observations, tracks incidents, builds alert messages and delivers them."""
