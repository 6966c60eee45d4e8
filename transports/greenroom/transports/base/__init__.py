"""What every transport uses: exit codes."""
