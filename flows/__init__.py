"""The Prefect flows of Lookout. The package `monitors` contains the computations, and `warehouse` the storage."""
