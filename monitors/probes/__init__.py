"""Ask the app questions. Drivers send the questions, and the runner stores a failed question as a `NoAnswer`."""
