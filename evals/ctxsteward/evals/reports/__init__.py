"""What a run of suites is told as: JUnit XML for CI, Markdown for people, and a history to compare with."""
