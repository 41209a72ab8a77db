"""What real users asked and got as answers: logs and traffic that are already stored. Nothing here asks the app."""
