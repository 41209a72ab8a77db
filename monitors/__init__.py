"""The domain: ask the app, grade what it says, weigh it. No orchestrator, no database."""
