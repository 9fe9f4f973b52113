"""How is it computed fast? Compiled loops over plain arrays, nothing else."""

from structlearn._src.common.pool import POOL
from structlearn._src.kernels.linger import linger

POOL.linger = linger  # not compiled before threads need it
