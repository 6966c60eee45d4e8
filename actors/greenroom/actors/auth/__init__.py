"""Who asks and what they may see: principals, scopes, policy, key grants and the errors that say no."""
