"""Contains the Prefect flows. They leave computations to the package `monitors`, and storage to `warehouse`."""
