"""Passports: signed exports of sessions, and their restoring."""
