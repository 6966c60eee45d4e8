"""Steps of work, by user and project: what tends to come next, and what is done again and again."""
