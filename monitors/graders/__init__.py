"""Grade whether an answer is right. Each grader checks one aspect and abstains without evidence."""
