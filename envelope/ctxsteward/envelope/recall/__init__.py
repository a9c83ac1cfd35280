"""Recall: choose and rank the originals and facts that a user turn is shown again."""
