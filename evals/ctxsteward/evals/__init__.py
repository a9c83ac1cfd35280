"""Evals: suites of long conversations, the recall and cost evals, and benchmarks that hold the builder to numbers."""
