"""The ledger: a set of observations, indexed, and the records they make."""
