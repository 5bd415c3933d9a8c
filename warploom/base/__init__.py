"""Facts that every layer shares: dtypes, targets, reports. Knows nothing of the IR."""
