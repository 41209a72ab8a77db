"""Ask a model of another family what the plain graders leave open, and know when not to believe it."""
