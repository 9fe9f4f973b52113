"""Layers of PyTorch: the two worlds as differentiable functions of tensors."""
