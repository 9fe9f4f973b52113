"""What all rooms share: errors, checks, arrays, random streams, time limits, threads."""
