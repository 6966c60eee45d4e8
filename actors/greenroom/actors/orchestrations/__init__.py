"""Requests that several actors carry out together: imports, handovers, passports."""
