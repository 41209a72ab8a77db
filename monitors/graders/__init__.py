"""Is the answer right? One idea per grader; each abstains where it has nothing to go on."""
