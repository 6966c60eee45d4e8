"""HTTP and JSON for programs, and the console for people."""
