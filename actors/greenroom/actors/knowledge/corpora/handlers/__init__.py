"""What a corpus does with each request."""
