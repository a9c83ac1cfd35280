"""One night, top to bottom: its stages, what it is told, what it reports, the chain of finished nights."""
