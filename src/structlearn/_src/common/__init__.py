"""What all rooms share: errors, checks, arrays, time limits, threads."""
