"""``python -m ctxsteward``: the command line."""

from ctxsteward.console.cli import main

if __name__ == "__main__":
    main()
