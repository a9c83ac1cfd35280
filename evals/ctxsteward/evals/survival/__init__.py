"""What the window still shows of what was said: statements that questions need, rules that last, newest values."""
