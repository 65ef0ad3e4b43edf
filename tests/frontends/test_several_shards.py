"""Several shards or parts in one transfer, and ranges with a stride: equal to the loop that writes them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.frontends import coll
from collc.frontends.coll.limits import DEFAULT_NODE_LIMIT as NODE_LIMIT
from collc.frontends.coll.limits import STATEMENTS_PER_NODE
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule

_NET = """topology net { rank r[4]; for a in 0..4, b in 0..4 { if a != b { link r[a] -> r[b]; link r[a] -> r[b]; } } }
collective c = KIND on net; schedule c using steps { BODY }"""


def steps(body: str, kind: str = "allreduce", node_limit: int = NODE_LIMIT) -> Schedule:
    spec = coll.load("<test>", text=_NET.replace("KIND", kind).replace("BODY", body), node_limit=node_limit)
    schedule = spec.collectives["c"].schedule.schedule
    assert isinstance(schedule, Schedule)
    return schedule


def mistake(body: str, node_limit: int = NODE_LIMIT) -> str:
    with pytest.raises(CollcError) as caught:
        steps(body, node_limit=node_limit)
    (one,) = caught.value.diagnostics
    return f"{one.code}: {one.message} ({one.hint})"


_SEVERAL = {
    "0..4": [0, 1, 2, 3], "0..4 by 2": [0, 2], "1..4 by 2": [1, 3], "0..4 by 9": [0], "2..1": [], "{0, 3}": [0, 3],
    "{3, 1}": [1, 3], "{j for j in 0..4 if j != 1}": [0, 2, 3], "2": [2], "{0..3 by 2, 1}": [0, 1, 2],
}  # fmt: skip


@pytest.mark.parametrize("action", ["send", "reduce"])
@pytest.mark.parametrize(("text", "numbers"), _SEVERAL.items())
def test_several_shards_are_the_written_out_loop(action: str, text: str, numbers: list[int]) -> None:
    assert steps(f"at 0: {action} shards {text} from 0 to 1;") == steps(
        "".join(f"at 0: {action} shard {k} from 0 to 1;" for k in numbers)
    )


@given(st.sampled_from(sorted(_SEVERAL)), st.sampled_from(sorted(_SEVERAL)), st.sampled_from(["send", "reduce"]))
def test_several_parts_of_several_shards_are_the_written_out_loop(shards: str, parts: str, action: str) -> None:
    loop = f"for k in {_in_a_loop(shards)}, i in {_in_a_loop(parts)}"
    assert steps(f"at 3: {action} shards {shards} parts {parts} of 4 from 2 to 0;") == steps(
        f"{loop} {{ at 3: {action} shard k part i of 4 from 2 to 0; }}"
    )


def _in_a_loop(text: str) -> str:
    return f"{{{text}}}" if text.isdigit() else text


_DOUBLING = """topology net = hypercube(2); collective c = allgather on net; schedule c using steps {
  for r in 0..4 { at 0: send shard r from r to xor(r, 1); at 1 { SECOND } } }"""


@pytest.mark.parametrize("target", ["msccl-xml", "mpi-c", "oneccl-xml"])
def test_both_forms_give_the_same_bytes(target: str) -> None:
    written_out = "for k in {r, xor(r, 1)} { send shard k from r to xor(r, 2); }"
    several = "send shards {r, xor(r, 1)} from r to xor(r, 2);"
    one, two = (
        collc.compile_source(_DOUBLING.replace("SECOND", text), target=target).artifacts
        for text in (written_out, several)
    )
    assert [a.text for a in one.values()] == [a.text for a in two.values()]


def test_ranges_with_a_stride_stand_wherever_ranges_do() -> None:
    looped = "for k in 0..4 by 2 { at 0: send shard k from 0 to 1; }"
    assert steps(looped) == steps("at 0 { send shard 0 from 0 to 1; send shard 2 from 0 to 1; }")
    topology = coll.topology("circulant(9, {1..5 by 2})")
    assert (topology.name, topology.degree) == ("circulant(9, {1, 3})", 4)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("at 0: send shard 0..4 from 0 to 1;",
         "C0132: found a range, needed the number of a shard (write `shards 0..4`)"),
        ("at 0: send shard {0, 1} from 0 to 1;",
         "C0132: found a set, needed the number of a shard (write `shards {0, 1}`)"),
        ("at 0: send shard 0 part 0..2 of 2 from 0 to 1;",
         "C0132: found a range, needed the number of a part (write `parts 0..2`)"),
        ("at 0: send shards 0..5 from 0 to 1;",
         "C0135: found shard 4: shards are 0 to 3 (the last is 3: a range `a..b` goes up to b, without b)"),
        ("at 0: send shards 0..1000000000000000000000 from 0 to 1;",
         "C0135: found shard 4: shards are 0 to 3 (the last is 3: a range `a..b` goes up to b, without b)"),
        ("at 0: send shard 0 parts 1..9 of 3 from 0 to 1;",
         "C0135: found part 3 of 3: parts are 0 to 2 (the last is 2: a range `a..b` goes up to b, without b)"),
        ("at 0: send shards 0..4 by 0 from 0 to 1;",
         "C0134: found the stride 0, needed one from 1 (ranges ascend: write the numbers in a set for another order)"),
        ('at 0: send shards "all" from 0 to 1;',
         "C0131: found a string, needed shards (write `shards LOW..HIGH` or `shards {A, B}`)"),
    ],
)  # fmt: skip
def test_mistakes_name_the_form_that_is_needed(body: str, expected: str) -> None:
    assert mistake(body) == expected


def test_the_budget_counts_the_transfers_that_a_statement_stands_for() -> None:
    most = 50 * STATEMENTS_PER_NODE
    body = f"for s in 0..{most // 16} {{ at s: send shards 0..4 parts 0..4 of 4 from 0 to 1; }}"
    assert mistake(body, 50).startswith(f"C0142: found more than {most} statements")
    body = f"for s in 0..{most // 16} {{ at s: send shards 0..2 parts 0..4 of 4 from 0 to 1; }}"
    assert len(steps(body, node_limit=50)) == most // 2
