"""The Prefect flows. They only call the other packages in order: `monitors` computes, and `warehouse` stores."""
