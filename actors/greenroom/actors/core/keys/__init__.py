"""API keys: the actor, the cache of each process, administration and rate limits."""
