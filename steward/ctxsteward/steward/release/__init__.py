"""From records to a profile in force: the slice, the decision, approvals, canary and promotion, and what a rollback
takes back.
"""
