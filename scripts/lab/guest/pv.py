"""A verbs client that checks every byte: pv.py server|client ADDRESS [ROUNDS] [BYTES].

A round is a SEND and an RDMA WRITE from client to server and an RDMA READ back, each with a pattern of its own. Fetch-and-adds
follow. Both sides print how many buffers were wrong, and exit with 1 if any was.
"""

import hashlib
import random
import socket
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

PORT = 18600
ATOMICS = 20
ROLE, ADDRESS = sys.argv[1], sys.argv[2]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
SIZE = int(sys.argv[4]) if len(sys.argv) > 4 else 65536

context = Context(name="rxe0")
domain = PD(context)
completions = CQ(context, 256)
access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
# Two buffers, and a counter for the atomics.
memory = MR(domain, 2 * SIZE + 8, access)
qp = QP(domain, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=completions, rcq=completions, cap=QPCap(64, 64, 1, 1)))


def meet():
    """A TCP connection between the two programs, over which they exchange addresses and take turns."""
    if ROLE == "server":
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", PORT))
        listener.listen(1)
        return listener.accept()[0]
    for _ in range(100):
        try:
            return socket.create_connection((ADDRESS, PORT))
        except OSError:
            time.sleep(0.2)
    sys.exit("the server does not answer")


peer = meet()
out, into = peer.makefile("w"), peer.makefile("r")
first = random.randrange(1 << 24)
print(qp.qp_num, first, context.query_gid(1, 1).gid, memory.buf, memory.rkey, file=out, flush=True)
number, theirs, gid, address, key = into.readline().split()
number, theirs, address, key = int(number), int(theirs), int(address), int(key)

attributes = QPAttr(qp_state=e.IBV_QPS_INIT)
attributes.qp_access_flags, attributes.pkey_index, attributes.port_num = access, 0, 1
qp.to_init(attributes)
attributes.path_mtu, attributes.dest_qp_num, attributes.rq_psn = e.IBV_MTU_1024, number, theirs
attributes.max_dest_rd_atomic, attributes.min_rnr_timer = 1, 12
route = GlobalRoute(dgid=GID(gid), sgid_index=1, hop_limit=64)
attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
qp.to_rtr(attributes)
attributes.sq_psn, attributes.max_rd_atomic = first, 1
# A timeout of 268 ms: emulated hosts are slow.
attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 16, 7, 7
qp.to_rts(attributes)


def turn():
    print("turn", file=out, flush=True)
    assert into.readline() == "turn\n"


def complete():
    while True:
        count, done = completions.poll(1)
        if count:
            assert done[0].status == e.IBV_WC_SUCCESS, done[0].status
            return


def post(opcode, at=0):
    atomic = opcode == e.IBV_WR_ATOMIC_FETCH_AND_ADD
    request = SendWR(opcode=opcode, num_sge=1, sg=[SGE(memory.buf, 8 if atomic else SIZE, memory.lkey)])
    if opcode in (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_READ):
        request.set_wr_rdma(key, at)
    if atomic:
        request.set_wr_atomic(key, at, 3)
    qp.post_send(request)
    complete()


def pattern(*words):
    return hashlib.shake_128(repr(words).encode()).digest(SIZE)


wrong = 0
for n in range(ROUNDS):
    if ROLE == "server":
        qp.post_recv(RecvWR(num_sge=1, sg=[SGE(memory.buf + SIZE, SIZE, memory.lkey)]))
        turn()
        complete()
        wrong += memory.read(SIZE, SIZE) != pattern("send", n)
        turn()
        turn()
        wrong += memory.read(SIZE, SIZE) != pattern("write", n)
        memory.write(pattern("read", n), SIZE, SIZE)
        turn()
        turn()
    else:
        memory.write(pattern("send", n), SIZE)
        turn()
        post(e.IBV_WR_SEND)
        turn()
        memory.write(pattern("write", n), SIZE)
        post(e.IBV_WR_RDMA_WRITE, address + SIZE)
        turn()
        turn()
        post(e.IBV_WR_RDMA_READ, address + SIZE)
        wrong += memory.read(SIZE, 0) != pattern("read", n)
        turn()
if ROLE == "client":
    for n in range(ATOMICS):
        post(e.IBV_WR_ATOMIC_FETCH_AND_ADD, address + 2 * SIZE)
        wrong += struct.unpack("<q", memory.read(8, 0))[0] != 3 * n
turn()
print(f"{ROLE}: {ROUNDS} x (SEND, WRITE, READ) of {SIZE} B, {ATOMICS} fetch-and-adds, wrong buffers: {wrong}")
sys.exit(wrong != 0)
