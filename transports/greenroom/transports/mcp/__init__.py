"""MCP itself: frames to requests of the domain and back, in both eras, whatever carries the frames."""
