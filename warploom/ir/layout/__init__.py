"""Layout algebra: pure functions on hashable values. Knows neither IR nor devices."""
