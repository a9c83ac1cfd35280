"""Object stores for lasting data, behind one small port."""
