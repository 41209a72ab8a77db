"""A demo chat page about fictional insurance policies.

Faults can be planted in it, which the demo's suite detects.
"""
