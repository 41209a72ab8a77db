"""Ask the app questions.

Drivers send the questions. The runner stores a question without an answer as a `NoAnswer`.
"""
