"""Ask the app questions. Drivers send them, and the runner stores a failed question as a `NoAnswer`."""
