"""A session's history: its log, the state folded from it, and every original by reference."""
