"""What clients' hooks tell: secrets that are left out of it, and what is found in it."""
