"""Load, check, edit and freeze suites of gold questions."""
