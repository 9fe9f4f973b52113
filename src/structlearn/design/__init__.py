"""What users give becomes examples: readers, shapes, choices and plans."""
