"""Read stored questions and answers of real users from logs and traffic, without sending questions to the app."""
