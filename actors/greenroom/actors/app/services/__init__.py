"""Services for embedding programs: Python objects over the actors behind the tools."""
