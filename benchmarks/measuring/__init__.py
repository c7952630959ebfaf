"""The benchmark: jobs that run alone in child processes, in turns, and the report of their figures."""
