"""Services of a process: worker threads, forks and the end of the program, loggers, and compiled code."""
