"""Weigh what was found: severity, scores, metrics, verdict. Pure."""
