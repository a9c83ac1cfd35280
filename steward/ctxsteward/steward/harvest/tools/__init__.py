"""What tool calls of a transcript show: errors, their codes, and the later calls that repaired them."""
