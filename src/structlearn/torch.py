"""Layers of PyTorch: losses of two worlds on top of any network."""

from structlearn._src.torch.chain_layer import ChainLoss
from structlearn._src.torch.crf import CRF
from structlearn._src.torch.field_layer import FieldLoss
from structlearn._src.torch.graph_layer import GraphLoss
from structlearn._src.torch.grid_layer import GridLoss
from structlearn._src.torch.rule_layer import RuleLoss

__all__ = ["CRF", "ChainLoss", "FieldLoss", "GraphLoss", "GridLoss", "RuleLoss"]
