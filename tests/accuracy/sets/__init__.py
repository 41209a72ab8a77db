"""One module per labelled set; each has ``NAME`` and ``measure(data)``."""
