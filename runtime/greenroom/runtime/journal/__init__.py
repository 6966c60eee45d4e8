"""Append-only journals: hash chains, checkpoints against rollback, and the revocation log."""
