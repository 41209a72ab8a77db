"""The domain: ask the app, grade its answers, evaluate the run. No orchestrator, no database."""
