"""The program `greenroom`: its commands, their parser and their output."""
