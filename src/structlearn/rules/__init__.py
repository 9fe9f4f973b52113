"""The rule language: from text and tables to flat hinges."""
