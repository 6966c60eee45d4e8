"""Common parts of replies: pages, reasons for empty ones, damage, explanations."""
