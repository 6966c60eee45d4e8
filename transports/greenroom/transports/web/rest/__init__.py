"""The domain's requests as HTTP and JSON below `/api/v1`, for programs and browsers.

`problems`, `openapi` and `browser_checks` are functions of values. `browser_sessions` has the sessions of
browsers, `visitors` authenticates people and programs, `dispatch` sends their requests to agents, `events`
streams changes, and `endpoint` has the paths.
"""
