"""From records to a profile in force: the slice, the decision, approvals, promotion, canary and rollback."""
