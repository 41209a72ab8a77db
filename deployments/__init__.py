"""The entry points of the flows: command line, webhooks, schedules, pages and the demo."""
