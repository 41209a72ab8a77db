"""Read stored questions and answers of real users from logs and traffic, without asking the app."""
