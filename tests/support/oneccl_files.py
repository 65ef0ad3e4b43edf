"""A small oneCCL-XML file, and what breaks each rule of the schema."""

from __future__ import annotations

__all__ = ["BROKEN_FORM", "BROKEN_RULES", "VALID", "WRONG", "broken"]


def _sum(mine: int) -> str:
    operands = f'src="scratch" srcoff="{1 + mine}" with="scratch" withoff="0"'
    return f'<reduce {operands} dst="output" dstoff="{mine}" chunk="{mine}" count="1"/>'


def _rank(mine: int, other: int) -> str:
    return f"""\
  <rank id="{mine}" input="2" output="2">
    <segment count="1"/>
    <segment chunk="0" count="2"/>
    <thread id="0">
      <out peer="{other}" channel="0"/>
      <in peer="{other}" channel="0"/>
      <step id="0.0">
        <recv peer="{other}" channel="0" buffer="scratch" offset="0" chunk="{mine}" count="1"/>
        <send peer="{other}" channel="0" buffer="input" offset="{other}" chunk="{other}" count="1"/>
        <copy src="input" srcoff="0" dst="scratch" dstoff="1" chunk="0" count="2"/>
        {_sum(mine)}
      </step>
    </thread>
    <thread id="1">
      <out peer="{other}" channel="1"/>
      <in peer="{other}" channel="1"/>
      <step id="1.0">
        <sync step="0.0"/>
        <recv peer="{other}" channel="1" buffer="output" offset="{other}" chunk="{other}" count="1"/>
        <send peer="{other}" channel="1" buffer="output" offset="{mine}" chunk="{mine}" count="1"/>
      </step>
    </thread>
  </rank>
"""


#: two ranks exchange halves, add, and exchange sums; right in place and out of place
VALID = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!-- written by hand -->
<oneccl version="1" name="halves" ranks="2" channels="2" chunks="2" inplace="1" outofplace="1">
  <allreduce ops="sum prod min max"/>
{_rank(0, 1)}{_rank(1, 0)}</oneccl>
"""

_SEND = '<send peer="1" channel="0" buffer="input" offset="1" chunk="1" count="1"/>'
_RECV = '<recv peer="1" channel="0" buffer="scratch" offset="0" chunk="0" count="1"/>'
_COPY = '<copy src="input" srcoff="0" dst="scratch" dstoff="1" chunk="0" count="2"/>'
_REDUCE = _sum(0)
_AGAIN = _REDUCE.replace('src="scratch" srcoff="1"', 'src="output" srcoff="0"')
_MOVE = '<copy src="scratch" srcoff="1" dst="output" dstoff="0" chunk="0" count="1"/>'
_OUT, _IN = '<out peer="1" channel="1"/>', '<in peer="1" channel="1"/>'
_SYNC = '<sync step="0.0"/>'
_OPS = '<allreduce ops="sum prod min max"/>'

#: name -> (what is replaced where it first stands, by what, a word of the message); the schema refuses these
BROKEN_FORM = {
    "version": ('version="1" name', 'version="2" name', "version"),
    "unknown attribute": ('name="halves"', 'name="halves" extra="1"', "extra"),
    "missing attribute": ('chunks="2" ', "", "chunks"),
    "name": ('name="halves"', 'name="a b"', "name"),
    "no ranks": ('ranks="2"', 'ranks="0"', "ranks"),
    "too many channels": ('channels="2"', 'channels="1025"', "channels"),
    "chunks": ('chunks="2"', 'chunks="0"', "chunks"),
    "a number with a sign": ('offset="0"', 'offset="+0"', "offset"),
    "a number with zeros": ('offset="0"', 'offset="00"', "offset"),
    "a number too large": ('offset="0"', 'offset="2147483648"', "offset"),
    "flag": ('inplace="1"', 'inplace="2"', "inplace"),
    "dtype": ('name="halves"', 'name="halves" dtypes="int32 int33"', "int33"),
    "no dtype": ('name="halves"', 'name="halves" dtypes=""', "dtypes"),
    "bytes": ('name="halves"', 'name="halves" minBytes="-1"', "minBytes"),
    "unknown collective": (_OPS, '<allscatter ops="sum"/>', "allscatter"),
    "no operation": (_OPS, '<allreduce ops=""/>', "ops"),
    "unknown operation": (_OPS, '<allreduce ops="sum avg"/>', "avg"),
    "operations where nothing is added": (_OPS, '<allgather ops="sum"/>', "ops"),
    "a root too many": (_OPS, '<allreduce ops="sum" root="0"/>', "root"),
    "a root missing": (_OPS, "<broadcast/>", "root"),
    "root": (_OPS, '<reduce ops="sum" root="7"/>', "rootIsARank"),
    "two ranks of one number": ('<rank id="1"', '<rank id="0"', "rankKey"),
    "two threads of one number": ('<thread id="1"', '<thread id="0"', "threadKey"),
    "two steps of one number": ('<step id="1.0"', '<step id="0.0"', "stepKey"),
    "step number": ('<step id="0.0"', '<step id="0"', "id"),
    "sync on nothing": (_SYNC, '<sync step="0.1"/>', "syncsOnAStep"),
    "order in a step": (_SEND + "\n        " + _COPY, _COPY + "\n        " + _SEND, "send"),
    "order in a thread": ('<in peer="1" channel="0"/>', '<in peer="1" channel="0"/><out peer="1" channel="2"/>', "out"),
    "a thread without steps": ('<thread id="0">', '<thread id="0"/><thread id="0">', "step"),
    "peer": ('<out peer="1" channel="0"', '<out peer="2" channel="0"', "outToARank"),
    "peer of in": ('<in peer="1" channel="0"', '<in peer="2" channel="0"', "inFromARank"),
    "an end twice": ('<out peer="1" channel="0"/>', '<out peer="1" channel="0"/>' * 2, "outKey"),
    "an in end twice": ('<in peer="1" channel="0"/>', '<in peer="1" channel="0"/>' * 2, "inKey"),
    "two senders": (_OUT, _OUT + _OUT.replace('channel="1"', 'channel="0"'), "oneSender"),
    "two receivers": (_IN, _IN + _IN.replace('channel="1"', 'channel="0"'), "oneReceiver"),
    "another's connection": (_SEND, _SEND.replace('channel="0"', 'channel="1"'), "sendsOnItsOut"),
    "another's in": (_RECV, _RECV.replace('channel="0"', 'channel="1"'), "recvsOnItsIn"),
    "two sends in flight": (_SEND, _SEND + _SEND, "oneSend"),
    "two receives in flight": (_RECV, _RECV + _RECV, "oneRecv"),
    "count": ('chunk="1" count="1"', 'chunk="1" count="0"', "count"),
    "buffer": ('buffer="input"', 'buffer="inputs"', "buffer"),
    "text": (_SEND, "text" + _SEND, "step"),
}  # fmt: skip

#: name -> (what is replaced where it first stands, by what, the rule)
BROKEN_RULES = {
    "own peer": ('<out peer="1" channel="0"/>', '<out peer="1" channel="0"/><out peer="0" channel="0"/>', "R2"),
    "channel": ('<out peer="1" channel="0"/>', '<out peer="1" channel="0"/><out peer="1" channel="2"/>', "R3"),
    "segment": ('<segment chunk="0"', '<segment chunk="2"', "R4"),
    "chunk": (_SEND, _SEND.replace('chunk="1"', 'chunk="2"'), "R5"),
    "beyond input": (_SEND, _SEND.replace('offset="1"', 'offset="2"'), "R6"),
    "another chunk's place": (_SEND, _SEND.replace('offset="1"', 'offset="0"'), "R6"),
    "another segment": (_RECV, _RECV.replace('count="1"', 'count="2"'), "R6"),
    "inside a free segment": ('<segment count="1"/>', '<segment count="2"/>', "R6"),
    "beyond scratch": (_RECV, _RECV.replace('offset="0"', 'offset="3"'), "R6"),
    "never received": (_RECV, "", "R7"),
    "another size": (_SEND, _SEND.replace('offset="1" chunk="1" count="1"', 'offset="0" chunk="0" count="2"'), "R7"),
    "overlap": ('<segment chunk="0" count="2"/>', '<segment chunk="0" count="6"/>', "R8"),
    "empty step": ("    </thread>\n  </rank>", '<step id="1.1"/></thread></rank>', "R10"),
    "waits for ever": ('<step id="0.0">', '<step id="0.0">' + '<sync step="1.0"/>', "R11"),
    "buffers": ('input="2"', 'input="3"', "R12"),
    "no use": ('inplace="1" outofplace="1"', 'inplace="0" outofplace="0"', "R13"),
    "sizes": ('name="halves"', 'name="halves" minBytes="9" maxBytes="8"', "R14"),
    "adding": (_OPS, "<alltoall/>", "R9"),
}  # fmt: skip

#: name -> (replaced, by what, the check that fails): files of the right form that compute something else
WRONG = {
    "a lost wait": (_SYNC, "", "races"),
    "nothing added": (_REDUCE, _MOVE, "postcondition"),
    "added twice": (_REDUCE, _REDUCE + _AGAIN, "single reduction"),
}  # fmt: skip


def broken(change: tuple[str, str, str]) -> str:
    """Return the file with one change."""
    old, new, _ = change
    assert old in VALID, old
    text = VALID.replace(old, new, 1)
    if change is BROKEN_RULES["overlap"]:  # the segment holds chunks 0 1 0 1 0 1
        text = text.replace(_COPY, '<copy src="scratch" srcoff="1" dst="scratch" dstoff="3" chunk="0" count="3"/>', 1)
    if change is BROKEN_RULES["adding"]:
        text = text.replace('chunks="2"', 'chunks="1"', 1)
    return text
