"""Running programs: generators that say what to do, the threads that do it, and what a process needs for that."""
