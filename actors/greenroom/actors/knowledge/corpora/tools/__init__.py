"""Operations on corpora: requests to their actors, and replies to clients."""
