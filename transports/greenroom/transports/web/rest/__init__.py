"""The domain's requests as HTTP and JSON below `/api/v1`, for programs and for people's browsers.

`problems`, `openapi` and `browser_checks` are functions of values. `browser_sessions` knows who has logged
in, `visitors` lets people and programs in, `asking` asks the domain for them, `events` tells of changes,
`pages` are the few that there are, and `endpoint` has the paths. `serving` puts them together.
"""
