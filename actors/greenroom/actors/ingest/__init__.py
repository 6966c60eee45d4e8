"""Files into a corpus: which are read, reading and parsing them, and keeping up with their changes.

It runs in the process that a person or a client is connected to, since that is where the files are. What
may be hostile is parsed in processes of its own.
"""
