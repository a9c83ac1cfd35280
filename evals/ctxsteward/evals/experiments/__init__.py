"""Experiments: measurements that informed a decision once; run by hand, not part of the wheel."""
