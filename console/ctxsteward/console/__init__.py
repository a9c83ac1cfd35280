"""The command line. Optional rooms are imported when their command runs."""
