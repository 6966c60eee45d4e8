"""Identity and access: principals, scopes, visibility policy, key grants, and refusals."""
