"""Everything behind the public names: private, free to move. One folder for each subject."""
