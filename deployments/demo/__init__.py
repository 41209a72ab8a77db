"""A demo chat page about fictional insurance policies.

The demo's suite detects the faults that can be planted in the page.
"""
