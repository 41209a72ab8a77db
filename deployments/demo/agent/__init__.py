"""A small agent that triages issues of an invented repository, with faults that can be planted."""
