"""Order by happens-before: clocks, phases of barriers, histories of memory. Decides races and
unstable synchronisation from events alone; knows neither operations nor blocks nor reports."""
