"""Savings: for each operation the tokens of its answers compared with a declared baseline."""
