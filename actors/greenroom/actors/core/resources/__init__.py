"""Resources and their URIs."""
