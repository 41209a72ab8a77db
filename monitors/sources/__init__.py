"""What real users were told: logs and traffic that are already stored. Nothing here asks the app."""
