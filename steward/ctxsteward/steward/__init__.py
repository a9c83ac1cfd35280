"""The steward: what happens at night. Nothing here yet but the room."""
