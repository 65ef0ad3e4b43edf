"""Where nodes are drawn: each at a place of its own, boxes together, tori as grids."""

from __future__ import annotations

import pytest
from every_family import topologies
from sampling import every

import collc
from collc.backends.pictures.layout import MOST_LINKS, Layout, layout_of

FAMILIES = every(5, [expression for expression, _ in topologies()])


def of(expression: str) -> Layout:
    return layout_of(collc.topology(expression))


@pytest.mark.parametrize("expression", FAMILIES)
def test_every_node_has_a_place_of_its_own(expression: str) -> None:
    topology, layout = collc.topology(expression), of(expression)
    if layout.shape == "round":
        assert topology.is_direct and not layout.x
        return
    places = list(zip(layout.x, layout.y, strict=True))
    assert len(places) == topology.num_nodes
    assert layout.folded or len(set(places)) == len(places), places


@pytest.mark.parametrize("expression", FAMILIES)
def test_boxes_hold_every_rank_once(expression: str) -> None:
    topology, layout = collc.topology(expression), of(expression)
    if layout.shape == "boxes":
        ranks = [node for box in layout.boxes for node in box if node < topology.num_ranks]
        assert sorted(ranks) == list(range(topology.num_ranks))


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("torus(4, 5)", "grid"), ("torus(3, 3, 2)", "grid"), ("hypercube(3)", "grid"), ("mesh(4)", "grid"),
        ("product(torus(3), complete(2))", "grid"), ("power(uniring(4), 2)", "grid"), ("hamming(2, 3)", "grid"),
        ("transpose(torus(3, 3))", "grid"), ("biring(6)", "round"), ("kautz(2, 2)", "round"),
        ("cayley(dihedral(4), {1, 2})", "round"), ("subset(torus(3, 3), {0..7})", "round"), ("dgx_a100(2)", "boxes"),
        ("fat_tree(4)", "boxes"), ("dgx_a100(1)", "boxes"), ("torus(70, 70)", "none"),
    ],
)  # fmt: skip
def test_the_shape_follows_from_the_structure(expression: str, shape: str) -> None:
    assert of(expression).shape == shape


def test_neighbors_of_a_grid_are_one_cell_apart() -> None:
    topology, layout = collc.topology("torus(5, 7)"), of("torus(5, 7)")
    apart = [
        abs(layout.x[a] - layout.x[b]) + abs(layout.y[a] - layout.y[b])
        for a, b in zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    ]
    assert set(apart) == {1, 4, 6}  # neighbors, and the links around both sides
    assert layout.wraps and not of("mesh(5, 7)").wraps


def test_the_third_side_is_aslant_as_in_a_cube() -> None:
    layout = of("torus(3, 4, 5)")
    places = list(zip(layout.x, layout.y, strict=True))
    assert layout.cell == 4
    assert [places[rank] for rank in (0, 1, 5, 20, 40)] == [(0, 0), (4, 0), (0, 4), (1, 1), (2, 2)]


def test_a_long_third_side_is_blocks() -> None:
    layout = of("torus(9, 2, 2)")
    assert layout.cell == 1 and len(set(zip(layout.x, layout.y, strict=True))) == 36


def test_a_tall_grid_lies_down() -> None:
    layout = of("torus(30, 3)")
    assert (max(layout.x), max(layout.y)) == (29, 2)


def test_switches_of_a_box_are_below_its_ranks_and_shared_ones_above() -> None:
    topology, layout = collc.topology("dgx_a100(2)"), of("dgx_a100(2)")
    row = {topology.names[node]: layout.y[node] for node in range(topology.num_nodes)}
    assert row["ib"] < row["gpu[0, 0]"] == row["gpu[1, 7]"] < row["nv[0]"]
    tree, places = collc.topology("leaf_spine(2, 2, 1)"), of("leaf_spine(2, 2, 1)")
    assert places.y[tree.num_nodes - 1] < places.y[tree.num_ranks] < places.y[0]  # spine, leaf, rank


def test_many_boxes_are_drawn_one_at_a_time_one_of_each_kind() -> None:
    alike = of("dgx_a100(32)")
    assert alike.folded and set(alike.kind) == {0} and len(alike.boxes) == 32
    assert [alike.x[node] for node in alike.boxes[0]] == [alike.x[node] for node in alike.boxes[31]]
    broken = of("degraded(without(dgx_a100(32), {gpu[3, 1]}), {gpu[5, 2] <-> nv[5]}, 1/2)")
    assert broken.folded and set(broken.kind) == {0, 3, 5}


def test_too_many_links_are_not_drawn() -> None:
    assert collc.topology("complete(150)").num_links > MOST_LINKS and of("complete(150)").shape == "none"
