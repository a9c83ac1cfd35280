"""The verbs of `ctxsteward steward`; each module is imported when its verb runs."""
