"""Tool profiles, one module for each system whose clients a profile is for."""
