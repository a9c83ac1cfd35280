"""Forgetting a session or a person: what is destroyed, redacted and withdrawn, in an order that a crash cannot
break.
"""
