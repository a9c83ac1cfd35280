"""The command line, ``ctxsteward``. `cli` is its root; other rooms are imported when a command that needs them runs."""
