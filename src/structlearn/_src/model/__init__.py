"""What do weights mean? Linear maps from weights to tables and back, and designs of models."""
