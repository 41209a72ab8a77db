"""A small demo agent that triages issues of a fictional repository. Faults can be planted in the agent."""
