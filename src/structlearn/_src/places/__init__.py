"""Who computes: places other than threads of this process."""
