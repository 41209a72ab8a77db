"""Labelled sets, one module for each set. Every module defines ``NAME`` and ``measure(data)``."""
