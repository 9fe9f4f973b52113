"""What came out? Pictures."""
