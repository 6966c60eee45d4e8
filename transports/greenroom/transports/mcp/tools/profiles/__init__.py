"""Tool profiles: one module for each older system."""
