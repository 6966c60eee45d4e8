"""Passports: sessions that leave a server as one signed document, and come back from one."""
