"""Common parts of replies: pages, reasons for empty replies, damage, explanations."""
