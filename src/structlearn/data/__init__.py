"""What comes in: files and data sets."""
