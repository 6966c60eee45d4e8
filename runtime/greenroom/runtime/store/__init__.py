"""The store: one writer, durable commits, proofs of pages and checks of integrity."""
