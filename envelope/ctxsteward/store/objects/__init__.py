"""Object stores: what is kept for good, behind one small port."""
