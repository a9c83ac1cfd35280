"""What leaves the window, what takes its place, and what that lost."""
