"""The benchmark: jobs that run alone in child processes, in turns, and what is made of their figures."""
