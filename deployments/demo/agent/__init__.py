"""A small demo agent that triages issues of an invented repository. It can have planted faults."""
