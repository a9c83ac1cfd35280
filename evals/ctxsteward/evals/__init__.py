"""Evals: scenarios, scorers and benchmarks that hold the builder to numbers."""
