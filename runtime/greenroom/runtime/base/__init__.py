"""What every other part of the runtime uses: errors, addresses, clocks, options, statistics."""
