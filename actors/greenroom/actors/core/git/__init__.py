"""Git repositories of folders: the project that a folder belongs to, and git run safely."""
