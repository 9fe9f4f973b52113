"""What is kept? Model files, UAI files, data sets and their downloads."""
