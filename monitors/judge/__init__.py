"""Ask a model of another family to grade the cases that the graders without a model leave ungraded."""
