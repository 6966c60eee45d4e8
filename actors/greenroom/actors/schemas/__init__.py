"""The tools of sessions and memory as request and reply types, without any transport."""
