"""The domain: ask the app, grade what it says, evaluate the run. No orchestrator, no database."""
