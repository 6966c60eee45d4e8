"""Basic parts that the rest of the runtime uses: errors, addresses, clocks, options, statistics."""
