"""One night: the order of its stages, the process it runs in, its report, and the chain of finished nights."""
