"""An MPI program that checks every word: ring.py [BYTES] [ROUNDS] [reduce].

A round is an all-reduce of BYTES per rank, and an all-to-all unless `reduce` is given. Rank 0 prints their times and how many words were wrong, and the
exit code is 1 if any was.
"""

import sys
from array import array

from mpi4py import MPI

# A rank's words repeat after so many, so that the program makes and checks them quickly in an emulated guest.
PERIOD = 1 << 16
world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
words = max(PERIOD, (int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20) // 4 // PERIOD * PERIOD)
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3


def pattern(start, step):
    return array("i", range(start, start + PERIOD * step, step)) * (words // PERIOD)


def differing(got, wanted):
    """Number of words that differ."""
    return 0 if got.tobytes() == wanted.tobytes() else sum(a != b for a, b in zip(got, wanted))


reduce_only = sys.argv[3:] == ["reduce"]
wrong = 0
for n in range(rounds):
    own, out = pattern(n, rank + 1), array("i", bytes(4 * words))
    world.Barrier()
    started = MPI.Wtime()
    world.Allreduce([own, MPI.INT], [out, MPI.INT], op=MPI.SUM)
    reduced = MPI.Wtime() - started
    wrong += differing(out, pattern(ranks * n, ranks * (ranks + 1) // 2))
    if rank == 0:
        print(f"all-reduce of {4 * words} B: {reduced:.3f} s", flush=True)
    if reduce_only:
        continue
    world.Barrier()
    share = words // ranks
    started = MPI.Wtime()
    world.Alltoall([own, share, MPI.INT], [out, share, MPI.INT])
    swapped = MPI.Wtime() - started
    for other in range(ranks):
        wrong += differing(out[other * share : (other + 1) * share], pattern(n, other + 1)[rank * share : (rank + 1) * share])
    if rank == 0:
        print(f"all-to-all of {4 * words} B: {swapped:.3f} s", flush=True)
wrong = world.allreduce(wrong)
if rank == 0:
    print(f"wrong words: {wrong}", flush=True)
sys.exit(wrong != 0)
