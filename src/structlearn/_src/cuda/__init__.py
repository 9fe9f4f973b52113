"""Inference on cards: kernels in Triton and what calls them."""
