"""What people say in a transcript: preferences, facts, corrections and decisions, as claims."""
