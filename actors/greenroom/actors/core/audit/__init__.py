"""The audit log: records, recording outside of actors, reading, exporting, verifying."""
