"""The gate: severity, scores, metrics, verdict. Pure."""
