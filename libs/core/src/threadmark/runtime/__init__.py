"""What a process needs: threads that work for others, forks and the end, loggers, and compiled code."""
