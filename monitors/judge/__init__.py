"""Ask a model of another family to grade the cases that the plain graders leave open."""
