"""What lasts: journal, object store, keys, governed state, facts, forgetting and the care of them. Imports schemas
alone.
"""
