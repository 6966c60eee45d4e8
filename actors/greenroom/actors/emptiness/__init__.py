"""Why searches and listings come back empty: looked up where they do, and nowhere else."""
