"""One-sided programs written by hand: rings with signals and with packets, as notes and tests need them."""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.collective import Collective
from collc.ir.one_sided import Channel, Item, OneSided, Op, Operation
from collc.ir.one_sided.program import Transport
from collc.ir.program import Buffer

IN, OUT, SCRATCH = Buffer
MEMORY, PORT, SWITCH = Transport.MEMORY, Transport.PORT, Transport.SWITCH
NOP = Operation(Op.NOP)


def on(op: Op, *links: int, transport: Transport = MEMORY) -> Operation:
    """Return an operation on channels, or on semaphores."""
    return Operation(op, Transport.LOCAL if op in (Op.SEM_ACQUIRE, Op.SEM_RELEASE) else transport, links)


def move(op: Op, src: Sequence[Item], dst: Sequence[Item], transport: Transport = MEMORY, **more: int) -> Operation:
    """Return an operation on items."""
    return Operation(op, transport, (), tuple(src), tuple(dst), **more)


def ring(ranks: int, *, one_channel: bool = False) -> OneSided:
    """Return an allreduce in place around a ring with signals; with ``one_channel`` two ranks share it both ways."""
    channels: list[Channel] = []
    blocks = []
    for rank in range(ranks):
        up, down = (rank + 1) % ranks, (rank - 1) % ranks
        to = came = len(channels)
        channels.append(Channel(rank, up, MEMORY))
        if not one_channel:
            came = len(channels)
            channels.append(Channel(rank, down, MEMORY))
        blocks.append((rank, _ring_block(rank, up, ranks, to, came)))
    return OneSided.build(
        Collective("allreduce", ranks), 1, [(ranks, ranks, ranks - 1)] * ranks, channels, blocks, inplace=True
    )


def _ring_block(rank: int, up: int, ranks: int, to: int, came: int) -> list[Operation]:
    def mine(k: int) -> Item:
        return Item(rank, IN, k % ranks, 1)

    def theirs(k: int) -> Item:
        return Item(up, IN, k % ranks, 1)

    def slot(owner: int, k: int) -> Item:
        return Item(owner, SCRATCH, k, 1)

    tell, hear = [NOP, on(Op.SIGNAL, to)], [on(Op.WAIT, came), NOP]
    found = [on(Op.RLXSIGNAL, came), on(Op.RLXWAIT, to), NOP, move(Op.PUT, [mine(rank)], [slot(up, 0)]), *tell]
    for k in range(1, ranks):
        chunk = rank - k
        last = theirs(chunk) if k == ranks - 1 else slot(up, k)
        found += [*hear, move(Op.RES, [mine(chunk), slot(rank, k - 1)], [mine(chunk), last]), *tell]
    for k in range(ranks - 2):
        found += [*hear, move(Op.PUT, [mine(rank - k)], [theirs(rank - k)]), *tell]
    return [*found, *hear]


def ring_of_packets(ranks: int, *, double_scratch: bool = True) -> OneSided:
    """Return an allreduce in place around a ring, with packets and no signals."""
    channels = [Channel(rank, (rank + 1) % ranks, MEMORY) for rank in range(ranks)]
    blocks = [(rank, _packet_block(rank, (rank + 1) % ranks, ranks)) for rank in range(ranks)]
    sizes = [(ranks, ranks, 2 * ranks - 2)] * ranks
    return OneSided.build(
        Collective("allreduce", ranks), 1, sizes, channels, blocks, inplace=True, packets=True,
        double_scratch=double_scratch,
    )  # fmt: skip


def _packet_block(rank: int, up: int, ranks: int) -> list[Operation]:
    def mine(k: int) -> Item:
        return Item(rank, IN, k % ranks, 1)

    def slot(owner: int, k: int) -> Item:
        return Item(owner, SCRATCH, k, 1)

    found = [move(Op.PPKT, [mine(rank)], [slot(up, 0)])]
    for k in range(1, ranks):
        found.append(move(Op.RESPKT, [mine(rank - k), slot(rank, k - 1)], [mine(rank - k), slot(up, k)]))
    for k in range(ranks - 2):
        found.append(move(Op.RPPKT, [slot(rank, ranks - 1 + k)], [slot(up, ranks + k)]))
        found.append(move(Op.UPKT, [slot(rank, ranks - 1 + k)], [mine(rank - k)]))
    return [*found, move(Op.UPKT, [slot(rank, 2 * ranks - 3)], [mine(rank + 2)])]


# ---- other shapes


class Mesh:
    """One channel of a transport from every rank to every other one, and items of ranks."""

    def __init__(self, ranks: int, transport: Transport = MEMORY):
        self.ranks, self.transport = ranks, transport
        self.channels = [Channel(a, b, transport) for a in range(ranks) for b in range(ranks) if a != b]
        self.row = {(c.rank, c.peer): k for k, c in enumerate(self.channels)}

    def peers(self, rank: int) -> list[int]:
        return [other for other in range(self.ranks) if other != rank]

    def on(self, op: Op, rank: int, peers: Sequence[int] | None = None) -> Operation:
        """Return a signal to peers, or a wait for them."""
        listed = self.peers(rank) if peers is None else peers
        return on(op, *(self.row[rank, peer] for peer in listed), transport=self.transport)

    def ready(self, rank: int) -> list[Operation]:
        """Return the start: tell all peers that they may write here, and wait until they may be written."""
        return [self.on(Op.RLXSIGNAL, rank), self.on(Op.RLXWAIT, rank), NOP]


def item(rank: int, buffer: Buffer, offset: int = 0, count: int = 1) -> Item:
    """Return chunks of a rank's buffer."""
    return Item(rank, buffer, offset, count)


def copy(src: Item, dst: Item, **more: int) -> Operation:
    """Return a local copy."""
    return Operation(Op.COPY, Transport.LOCAL, (), (src,), (dst,), **more)


def allgather(ranks: int, *, transport: Transport = MEMORY, together: bool = False) -> OneSided:
    """Return an allgather out of place: every rank puts its chunk into the outputs of all others."""
    mesh, blocks = Mesh(ranks, transport), []
    for rank in range(ranks):
        mine = [item(rank, IN)] * (ranks - 1)
        theirs = [item(peer, OUT, rank) for peer in mesh.peers(rank)]
        links = tuple(mesh.row[rank, peer] for peer in mesh.peers(rank)) if transport == PORT else ()
        put = Operation(Op.PWSF if transport == PORT else Op.PUT, transport, links, tuple(mine), tuple(theirs))
        tell = [] if transport == PORT else [NOP, mesh.on(Op.SIGNAL, rank)]
        rows = [copy(item(rank, IN), item(rank, OUT, rank)), put, *tell, mesh.on(Op.WAIT, rank)]
        blocks.append((rank, rows if together else [*mesh.ready(rank), *rows]))
    return OneSided.build(
        Collective("allgather", ranks), 1, [(1, ranks, 0)] * ranks, mesh.channels, blocks, together=together
    )


def reads(ranks: int, *, fetch: bool = False) -> OneSided:
    """Return a reduce-scatter that reads the inputs of peers, or with ``fetch`` first gets them into scratch."""
    mesh, blocks = Mesh(ranks), []
    for rank in range(ranks):
        theirs = [item(peer, IN, rank) for peer in mesh.peers(rank)]
        if fetch:
            # offsets are equal on both sides: the executor crosses them
            slots = [item(rank, SCRATCH, rank + k * ranks) for k in range(ranks - 1)]
            rows = [move(Op.GET, [peer], [item(rank, SCRATCH, rank)]) for peer in theirs[:1]]
            rows += [NOP, Operation(Op.RE, src=(item(rank, IN, rank), slots[0]), dst=(item(rank, OUT),))]
        else:
            rows = [move(Op.RRE, [item(rank, IN, rank), *theirs], [item(rank, OUT)])]
        end = [NOP, mesh.on(Op.SIGNAL, rank), mesh.on(Op.WAIT, rank)]
        blocks.append((rank, [*mesh.ready(rank), *rows, *end]))
    return OneSided.build(
        Collective("reduce-scatter", ranks), 1, [(ranks, 1, ranks if fetch else 0)] * ranks, mesh.channels, blocks
    )


def packets_to_all(ranks: int, *, double_scratch: bool = True) -> OneSided:
    """Return an allreduce in which every rank sends packets to all others and adds what comes."""
    mesh, blocks = Mesh(ranks), []
    for rank in range(ranks):
        slots = [item(rank, SCRATCH, peer) for peer in mesh.peers(rank)]
        sent = [item(peer, SCRATCH, rank) for peer in mesh.peers(rank)]
        blocks.append((rank, [
            move(Op.PPKT, [item(rank, IN)] * (ranks - 1), sent),
            move(Op.REPKT, [item(rank, IN), *slots], [item(rank, IN)]),
        ]))  # fmt: skip
    return OneSided.build(
        Collective("allreduce", ranks), 1, [(ranks, ranks, ranks * ranks)] * ranks, mesh.channels,
        [(rank, [_all_chunks(row, ranks) for row in rows]) for rank, rows in blocks],
        inplace=True, packets=True, double_scratch=double_scratch,
    )  # fmt: skip


def _all_chunks(row: Operation, ranks: int) -> Operation:
    """Return an operation on all chunks of a buffer in place of one; slots are as large."""

    def whole(one: Item) -> Item:
        return one._replace(offset=one.offset * ranks if one.buffer == SCRATCH else 0, count=ranks)

    return row._replace(src=tuple(map(whole, row.src)), dst=tuple(map(whole, row.dst)))


def two_blocks(*, barrier: bool = False, shares: int = 1) -> OneSided:
    """Return a broadcast from rank 0 to 1: one block receives into scratch, the other one copies to the output."""
    channels = [Channel(0, 1, MEMORY), Channel(1, 0, MEMORY)]
    blocks = []
    for rank in range(2):
        here = [copy(item(0, IN, k), item(0, OUT, k)) for k in range(2)] if rank == 0 else []
        if rank == 0:
            first = [
                on(Op.RLXWAIT, 0), NOP, move(Op.PUT, [item(0, IN, 0, 2)], [item(1, SCRATCH, 0, 2)]), NOP,
                on(Op.SIGNAL, 0), *here,
            ]  # fmt: skip
            blocks.append((0, first))
            continue
        meet = Operation(Op.BARRIER, number=3, blocks=shares + 1)
        join = [meet] if barrier else [NOP, on(Op.SEM_RELEASE, *range(shares))]
        blocks.append((1, [on(Op.RLXSIGNAL, 1), on(Op.WAIT, 1), *join]))
        for share in range(shares):
            wait = [meet] if barrier else [on(Op.SEM_ACQUIRE, share), NOP]
            part = copy(item(1, SCRATCH, 0, 2), item(1, OUT, 0, 2), share=share, shares=shares)
            blocks.append((1, [*wait, part]))
    return OneSided.build(
        Collective("broadcast", 2, root=0), 1, [(2, 2, 2)] * 2, channels, blocks,
        semaphores=[] if barrier else [(1, 0)] * shares,
    )  # fmt: skip


def streamed(ranks: int = 2) -> OneSided:
    """Return a broadcast from rank 0 to 1 in a loop, a slice a turn, through scratch and two blocks of rank 1."""
    channels = [Channel(0, 1, MEMORY), Channel(1, 0, MEMORY)]
    whole = {"loop": 0}
    sender = [
        on(Op.RLXWAIT, 0), NOP,
        *(row._replace(**whole) for row in (
            move(Op.PUT, [item(0, IN, 0, 2)], [item(1, SCRATCH, 0, 2)]), NOP, on(Op.SIGNAL, 0),
        )),
        copy(item(0, IN, 0, 2), item(0, OUT, 0, 2)),
    ]  # fmt: skip
    receiver = [
        on(Op.RLXSIGNAL, 1),
        *(row._replace(loop=1) for row in (on(Op.WAIT, 1), NOP, on(Op.SEM_RELEASE, 0))),
    ]
    copier = [
        row._replace(loop=2) for row in (on(Op.SEM_ACQUIRE, 0), NOP, copy(item(1, SCRATCH, 0, 2), item(1, OUT, 0, 2)))
    ]
    return OneSided.build(
        Collective("broadcast", ranks, root=0), 1, [(2, 2, 2)] * 2, channels, [(0, sender), (1, receiver), (1, copier)],
        semaphores=[(1, 0)], loops=[(4096, 2)] * 3,
    )  # fmt: skip


def through_switch(ranks: int) -> OneSided:
    """Return an allreduce in place that a switch adds: each rank does its chunk, between two rounds of signals."""
    mesh = Mesh(ranks)
    group = tuple(range(ranks))
    channels = [c for rank in group for c in (
        *(c for c in mesh.channels if c.rank == rank), Channel(rank, -1, SWITCH, IN, group)
    )]  # fmt: skip
    mesh.row = {(c.rank, c.peer): k for k, c in enumerate(channels)}
    blocks = []
    for rank in group:
        part = Item(rank, IN, rank, 1, mesh.row[rank, -1])
        add = Operation(Op.GLRES, SWITCH, (), (part,), (part,))
        blocks.append((rank, [*mesh.ready(rank), add, NOP, mesh.on(Op.SIGNAL, rank), mesh.on(Op.WAIT, rank)]))
    return OneSided.build(
        Collective("allreduce", ranks), 1, [(ranks, ranks, 0)] * ranks, channels, blocks, inplace=True
    )


def over_ports(ranks: int) -> OneSided:
    """Return an allreduce in place of one chunk a rank: all send to all over ports into slots, and add."""
    mesh, blocks = Mesh(ranks, PORT), []
    for rank in range(ranks):
        peers = mesh.peers(rank)
        whole = item(rank, IN, 0, ranks)
        slots = [item(rank, SCRATCH, peer * ranks, ranks) for peer in peers]
        sent = [item(peer, SCRATCH, rank * ranks, ranks) for peer in peers]
        links = tuple(mesh.row[rank, peer] for peer in peers)
        blocks.append((rank, [
            *mesh.ready(rank), Operation(Op.PWSF, PORT, links, (whole,) * len(peers), tuple(sent)),
            mesh.on(Op.WAIT, rank), NOP, Operation(Op.RE, src=(whole, *slots), dst=(whole,)),
        ]))  # fmt: skip
    return OneSided.build(
        Collective("allreduce", ranks), 1, [(ranks, ranks, ranks * ranks)] * ranks, mesh.channels, blocks, inplace=True
    )


def chain() -> OneSided:
    """Return a broadcast to rank 2: rank 1 tells it, without a nop in between, that the data of rank 0 are there."""
    channels = [Channel(0, 1, MEMORY), Channel(1, 0, MEMORY), Channel(1, 2, MEMORY), Channel(2, 1, MEMORY)]
    mine = item(0, IN, 0, 3)
    put = move(Op.PUT, [mine] * 2, [item(1, OUT, 0, 3), item(2, OUT, 0, 3)])
    blocks = [
        (0, [on(Op.RLXWAIT, 0), NOP, put, copy(mine, item(0, OUT, 0, 3)), NOP, on(Op.SIGNAL, 0)]),
        (1, [on(Op.RLXWAIT, 2), on(Op.RLXSIGNAL, 1), on(Op.WAIT, 1), on(Op.SIGNAL, 2)]),
        (2, [on(Op.RLXSIGNAL, 3), on(Op.WAIT, 3)]),
    ]
    return OneSided.build(Collective("broadcast", 3, root=0), 1, [(3, 3, 0)] * 3, channels, blocks)


def several_signals() -> OneSided:
    """Return a broadcast from rank 0, two blocks of which signal one channel; rank 1 waits for both and copies."""
    channels = [Channel(0, 1, MEMORY), Channel(1, 0, MEMORY)]
    blocks = [(0, [on(Op.RLXWAIT, 0), NOP, on(Op.SEM_RELEASE, 0), *_half(0)])]
    blocks.append((0, [on(Op.SEM_ACQUIRE, 0), NOP, *_half(1)]))
    both = [on(Op.WAIT, 1), on(Op.WAIT, 1), NOP, copy(item(1, SCRATCH, 0, 2), item(1, OUT, 0, 2))]
    blocks.append((1, [on(Op.RLXSIGNAL, 1), *both]))
    return OneSided.build(Collective("broadcast", 2, root=0), 1, [(2, 2, 2)] * 2, channels, blocks, semaphores=[(0, 0)])


def _half(share: int) -> list[Operation]:
    src, dst, out = item(0, IN, 0, 2), item(1, SCRATCH, 0, 2), item(0, OUT, 0, 2)
    put = move(Op.PUT, [src], [dst], share=share, shares=2)
    return [put, copy(src, out, share=share, shares=2), NOP, on(Op.SIGNAL, 0)]


def credits() -> OneSided:
    """Return a broadcast in two rounds through one slot: a second block copies it away and gives a credit back."""
    channels = [Channel(0, 1, MEMORY), Channel(1, 0, MEMORY)]
    send, receive, take = [on(Op.RLXWAIT, 0), NOP], [on(Op.RLXSIGNAL, 1)], []
    for k in range(2):
        send += [move(Op.PUT, [item(0, IN, k)], [item(1, SCRATCH)]), copy(item(0, IN, k), item(0, OUT, k)), NOP]
        send += [on(Op.SIGNAL, 0), *([on(Op.WAIT, 0), NOP] if k == 0 else [])]
        receive += [on(Op.WAIT, 1), NOP, on(Op.SEM_RELEASE, 0)]
        take += [on(Op.SEM_ACQUIRE, 0), NOP, copy(item(1, SCRATCH), item(1, OUT, k)), NOP]
        take += [on(Op.SIGNAL, 1)] if k == 0 else []
    return OneSided.build(
        Collective("broadcast", 2, root=0), 1, [(2, 2, 1)] * 2, channels, [(0, send), (1, receive), (1, take)],
        semaphores=[(1, 0)],
    )  # fmt: skip


def producers(*, needed: int = 2) -> OneSided:
    """Return a broadcast of one rank to itself: two blocks fill scratch and release one semaphore of a third."""
    fill = [(0, [copy(item(0, IN, k), item(0, SCRATCH, k)), NOP, on(Op.SEM_RELEASE, 0)]) for k in range(2)]
    take = [*[on(Op.SEM_ACQUIRE, 0)] * needed, NOP, copy(item(0, SCRATCH, 0, 2), item(0, OUT, 0, 2))]
    return OneSided.build(
        Collective("broadcast", 1, root=0), 2, [(2, 2, 2)], [], [*fill, (0, take)], semaphores=[(0, 2 - needed)]
    )


def consumers() -> OneSided:
    """Return a broadcast of one rank to itself: a block fills scratch, two others acquire one semaphore."""
    fill = [copy(item(0, IN, 0, 2), item(0, SCRATCH, 0, 2)), NOP, on(Op.SEM_RELEASE, 0), on(Op.SEM_RELEASE, 0)]
    takes = [(0, [on(Op.SEM_ACQUIRE, 0), NOP, copy(item(0, SCRATCH, k), item(0, OUT, k))]) for k in range(2)]
    return OneSided.build(
        Collective("broadcast", 1, root=0), 2, [(2, 2, 2)], [], [(0, fill), *takes], semaphores=[(0, 0)]
    )


def relayed_packets(*, transport: Transport = MEMORY, waits: bool = True) -> OneSided:
    """Return an allreduce of two ranks whose packets each rank first packs into its own scratch.

    A port may send them without waiting for them: then there is a nop in between.
    """
    mesh, blocks = Mesh(2, transport), []
    for rank in range(2):
        peer, whole = 1 - rank, item(rank, IN, 0, 2)
        links = (mesh.row[rank, peer],) if transport == PORT else ()
        sent = Operation(Op.RPPKT, transport, links, (item(rank, SCRATCH, 0, 2),), (item(peer, SCRATCH, 2, 2),))
        add = move(
            Op.RECPKT, [whole, item(rank, SCRATCH, 2, 2)], [item(rank, OUT, 0, 2), item(rank, SCRATCH, 4, 2)]
        )  # fmt: skip
        posted = [sent] if waits else [NOP, sent._replace(op=Op.PPKT)]
        blocks.append((rank, [move(Op.CPKT, [whole], [item(rank, SCRATCH, 0, 2)]), *posted, add]))
    return OneSided.build(
        Collective("allreduce", 2), 1, [(2, 2, 6)] * 2, mesh.channels, blocks, packets=True, double_scratch=True
    )


def reused_source() -> OneSided:
    """Return a broadcast in two rounds from one place of scratch, which a port reads: it is flushed in between."""
    mesh = Mesh(2, PORT)
    send = [on(Op.RLXWAIT, 0, transport=PORT)]
    for k in range(2):
        send += [NOP, copy(item(0, IN, k), item(0, SCRATCH)), copy(item(0, IN, k), item(0, OUT, k)), NOP]
        put = Operation(Op.PUT, PORT, (0,), (item(0, SCRATCH),), (item(1, OUT, k),))
        flush = Operation(Op.FLUSH, PORT, (0,), (), (item(0, SCRATCH),))
        send += [put, on(Op.SIGNAL, 0, transport=PORT), flush]
    receive = [on(Op.RLXSIGNAL, 1, transport=PORT), *[on(Op.WAIT, 1, transport=PORT)] * 2]
    return OneSided.build(
        Collective("broadcast", 2, root=0), 1, [(2, 2, 1)] * 2, mesh.channels, [(0, send), (1, receive)]
    )


def alltoall(ranks: int) -> OneSided:
    """Return an alltoall: every rank puts a chunk into the output of every other."""
    mesh, blocks = Mesh(ranks), []
    for rank in range(ranks):
        src = [item(rank, IN, peer) for peer in mesh.peers(rank)]
        dst = [item(peer, OUT, rank) for peer in mesh.peers(rank)]
        blocks.append((rank, [
            *mesh.ready(rank), move(Op.PUT, src, dst), copy(item(rank, IN, rank), item(rank, OUT, rank)), NOP,
            mesh.on(Op.SIGNAL, rank), mesh.on(Op.WAIT, rank),
        ]))  # fmt: skip
    return OneSided.build(Collective("alltoall", ranks), 1, [(ranks, ranks, 0)] * ranks, mesh.channels, blocks)


def in_place(kind: str, ranks: int) -> OneSided:
    """Return an allgather or reduce-scatter in place: the smaller buffer is in the larger one."""
    mesh, blocks = Mesh(ranks), []
    for rank in range(ranks):
        peers = mesh.peers(rank)
        if kind == "allgather":
            rows = [move(Op.PUT, [item(rank, IN)] * len(peers), [item(peer, OUT, rank) for peer in peers])]
            rows += [NOP, mesh.on(Op.SIGNAL, rank), mesh.on(Op.WAIT, rank)]
        else:
            rows = [move(Op.RRE, [item(rank, IN, rank), *(item(p, IN, rank) for p in peers)], [item(rank, OUT)])]
            rows += [NOP, mesh.on(Op.SIGNAL, rank), mesh.on(Op.WAIT, rank)]
        blocks.append((rank, [*mesh.ready(rank), *rows]))
    size = (1, ranks, 0) if kind == "allgather" else (ranks, 1, 0)
    return OneSided.build(Collective(kind, ranks), 1, [size] * ranks, mesh.channels, blocks, inplace=True)


def blocks_of_packets(*, shares: int = 1) -> OneSided:
    """Return an allreduce in place of two ranks: blocks send packets, add what comes, and unpack the sum."""
    mesh, blocks = Mesh(2), []
    for rank in range(2):
        peer = 1 - rank
        mine, theirs = item(rank, IN, rank), item(rank, IN, peer)
        own, come = item(rank, SCRATCH, 0), item(rank, SCRATCH, 1)
        for k in range(shares):
            part = {"share": k, "shares": shares}
            blocks.append((rank, [move(Op.PPKT, [theirs], [item(peer, SCRATCH, 0)], **part)]))
            blocks.append((rank, [move(Op.RESPKT, [mine, own], [mine, item(peer, SCRATCH, 1)], **part)]))
            blocks.append((rank, [move(Op.UPKT, [come], [theirs], **part)]))
    return OneSided.build(
        Collective("allreduce", 2), 1, [(2, 2, 2)] * 2, mesh.channels, blocks, inplace=True, packets=True,
        double_scratch=True,
    )  # fmt: skip


#: right programs of every kind, by name
SHAPES = {
    "ring": lambda: ring(3),
    "ring of two": lambda: ring(2, one_channel=True),
    "packets around": lambda: ring_of_packets(3),
    "packets to all": lambda: packets_to_all(3),
    "allgather": lambda: allgather(3),
    "allgather together": lambda: allgather(3, together=True),
    "allgather over ports": lambda: allgather(2, transport=PORT),
    "reads": lambda: reads(3),
    "gets": lambda: reads(2, fetch=True),
    "semaphores": lambda: two_blocks(),
    "shares": lambda: two_blocks(shares=2),
    "barrier": lambda: two_blocks(barrier=True),
    "barrier and shares": lambda: two_blocks(barrier=True, shares=2),
    "loops": lambda: streamed(),
    "switch": lambda: through_switch(3),
    "ports": lambda: over_ports(2),
    "chain": lambda: chain(),
    "several signals": lambda: several_signals(),
    "credits": lambda: credits(),
    "consumers": lambda: consumers(),
    "producers": lambda: producers(),
    "blocks of packets": lambda: blocks_of_packets(),
    "shares of packets": lambda: blocks_of_packets(shares=2),
    "relayed packets": lambda: relayed_packets(),
    "relayed packets over ports": lambda: relayed_packets(transport=PORT),
    "packed for a port": lambda: relayed_packets(transport=PORT, waits=False),
    "reused source": lambda: reused_source(),
    "alltoall": lambda: alltoall(3),
    "allgather in place": lambda: in_place("allgather", 3),
    "reduce-scatter in place": lambda: in_place("reduce-scatter", 3),
}
