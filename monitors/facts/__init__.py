"""Read facts from a text, such as quantities and citations. No module judges whether a fact is right.

The modules are pure: they have no side effects.
"""
