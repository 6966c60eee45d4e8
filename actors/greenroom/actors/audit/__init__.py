"""The audit log as something that is asked: noting from outside actors, reading, exporting, checking."""
