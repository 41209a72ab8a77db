"""Ask a model to grade the cases that the graders without a model leave ungraded.

The model must be of another family than the model of the target.
"""
