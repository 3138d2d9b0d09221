"""Does what ring.c does, over the MPI library that mpi4py finds; rank 0 names it on standard error."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
token = world.sendrecv(rank, dest=(rank + 1) % size, source=(rank - 1) % size)
total = world.allreduce(token)
half = world.Split(rank % 2, rank)
if half.allreduce(rank) != sum(range(rank % 2, size, 2)):
    world.Abort(99)
world.Barrier()
if rank == 0:
    print(MPI.Get_library_version().splitlines()[0], file=sys.stderr)
host = MPI.Get_processor_name()
print(f"rank {rank} of {size} on {host}: before {token}, sum {total}", flush=True)
if sys.argv[1:] == ["abort"] and rank == size - 1:
    world.Abort(7)
world.Barrier()
