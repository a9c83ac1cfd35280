"""Token budgets, and what texts, images and models cost."""
