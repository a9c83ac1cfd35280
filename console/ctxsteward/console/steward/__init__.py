"""What the verbs of `ctxsteward steward` do and show: each module is imported when its verb runs."""
