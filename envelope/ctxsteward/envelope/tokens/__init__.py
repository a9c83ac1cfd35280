"""Token budgets, and the tokens and prices of texts, images and models."""
