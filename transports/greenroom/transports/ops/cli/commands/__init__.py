"""The functions that run the commands of `greenroom`; `catalogue` has the table of commands."""
