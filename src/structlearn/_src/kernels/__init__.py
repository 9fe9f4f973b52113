"""How is it computed fast? Compiled loops over plain arrays, nothing else."""

from structlearn._src.common.pool import POOL, Compiled
from structlearn._src.kernels.launch import BEGUN, CALLS, make_box, serve
from structlearn._src.kernels.linger import linger

POOL.use(Compiled(linger, serve, make_box, CALLS, BEGUN))  # not compiled before threads need it
