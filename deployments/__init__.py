"""How the world reaches the flows: command line, webhook, schedule, pages, demo."""
