"""Compaction: the groups that leave the window, the bullets that replace them, and the losses."""
