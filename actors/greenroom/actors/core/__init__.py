"""Parts that all rooms of the actors share: validation, replies, access rights, keys, audit log."""
