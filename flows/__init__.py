"""The flows: orchestration only, where the monitors and the warehouse meet."""
