"""The functions that run the commands of `greenroom`; `catalogue` has their table."""
