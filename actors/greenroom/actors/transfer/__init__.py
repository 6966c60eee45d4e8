"""Memories as files: import, all or nothing, from several formats; export; search quality on own data."""
