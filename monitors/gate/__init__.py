"""Compute the severity of failures, the scores, the metrics and the verdict of a run, without side effects."""
