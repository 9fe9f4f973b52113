"""Strings, sparse rows and numbers in text."""
