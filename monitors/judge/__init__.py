"""Ask a judge model to grade the cases that graders without a model leave ungraded.

The judge must belong to another model family than the model of the target.
"""
