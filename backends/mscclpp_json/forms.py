"""The operands of operations: how many sources and destinations each has, where they are, and over which transports.

Source: MSCCL++'s execution kernel (notes, 2.4).
"""

from __future__ import annotations

from typing import NamedTuple

from collc.ir.one_sided.opcodes import Op

__all__ = ["ANYWHERE", "FORMS", "Form"]

#: where an operand is: in a buffer of the rank, of a peer, or behind a switch
_HERE, _PEER, _SWITCH = "here", "peer", "switch"

#: transports of operations that reach no peer
ANYWHERE = ("", "memory", "port", "switch")
_MEMORY, _PORT, _BOTH = ("memory",), ("port",), ("memory", "port")


class Form(NamedTuple):
    """The form of an operation: the places of its first sources and destinations, and of all that follow.

    ``pairs`` says that every source has a destination. ``slots`` says which of the operands hold packets, by the number
    of leading operands on each side that do not; None: no operand of the side holds packets. ``ids`` says that it names
    channels.
    """

    transports: tuple[str, ...] = ANYWHERE
    src: tuple[str, ...] = ()
    more_src: str = ""
    dst: tuple[str, ...] = ()
    more_dst: str = ""
    pairs: bool = False
    slots: tuple[int | None, int | None] = (None, None)
    ids: bool = False


_PUTS = Form(_PORT, (_HERE,), _HERE, (_PEER,), _PEER, pairs=True, ids=True)
_COUNTS = Form(_BOTH, ids=True)
FORMS = {
    Op.NOP: Form(),
    Op.BARRIER: Form(),
    Op.COPY: Form(src=(_HERE,), dst=(_HERE,)),
    Op.PUT: _PUTS._replace(transports=_BOTH, ids=False),
    Op.PWS: _PUTS,
    Op.PWSF: _PUTS,
    Op.GET: Form(_MEMORY, (_PEER,), _PEER, (_HERE,), _HERE, pairs=True),
    Op.SIGNAL: _COUNTS,
    Op.WAIT: _COUNTS,
    Op.RLXSIGNAL: _COUNTS,
    Op.RLXWAIT: _COUNTS,
    Op.FLUSH: Form(_PORT, dst=(), more_dst=_HERE, ids=True),
    Op.RE: Form(src=(_HERE,), more_src=_HERE, dst=(_HERE,)),
    Op.RES: Form(_MEMORY, (_HERE,), _HERE, (_HERE,), _PEER),
    Op.RRE: Form(_MEMORY, (_HERE,), _PEER, (_HERE,)),
    Op.RRES: Form(_MEMORY, (_HERE,), _PEER, (_HERE,), _PEER),
    Op.PPKT: Form(_MEMORY, (_HERE,), _HERE, (_PEER,), _PEER, pairs=True, slots=(None, 0)),
    Op.CPKT: Form(src=(_HERE,), dst=(_HERE,), slots=(None, 0)),
    Op.UPKT: Form(src=(_HERE,), dst=(_HERE,), slots=(0, None)),
    Op.RPPKT: Form(_BOTH, (_HERE,), "", (_PEER,), _PEER, slots=(0, 0)),
    Op.REPKT: Form(src=(_HERE,), more_src=_HERE, dst=(_HERE,), slots=(1, None)),
    Op.RESPKT: Form(_MEMORY, (_HERE,), _HERE, (_HERE,), _PEER, slots=(1, 1)),
    Op.RECPKT: Form(src=(_HERE,), more_src=_HERE, dst=(_HERE, _HERE), slots=(1, 1)),
    Op.RECSPKT: Form(_MEMORY, (_HERE,), _HERE, (_HERE, _HERE), _PEER, slots=(1, 1)),
    Op.GLRES: Form(("switch",), (_SWITCH,), "", (_SWITCH,)),
    Op.GSTORE: Form(("switch",), (_HERE,), "", (_SWITCH,)),
    Op.GSTOREPKT: Form(("switch",), (_HERE,), "", (_SWITCH,), slots=(0, 0)),
    Op.SEM_ACQUIRE: Form(),
    Op.SEM_RELEASE: Form(),
}
