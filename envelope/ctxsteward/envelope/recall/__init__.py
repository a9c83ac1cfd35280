"""Which originals and facts a user turn is shown again, and how they are ranked."""
