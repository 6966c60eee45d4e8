"""Who is connected: each process of the folder tells the one that owns it, which remembers it in memory."""
