"""The Prefect flows. A flow only calls the other packages: `monitors` to compute, and `warehouse` to store."""
