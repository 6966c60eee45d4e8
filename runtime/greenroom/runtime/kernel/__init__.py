"""From a mailbox through a handler to a committed reply: activation, group commit, outbox, idempotency."""
