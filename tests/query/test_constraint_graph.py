"""The constraint graph: what ties knobs together, in three formats that no text can break."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from maps import BUDGET, constraint, joint_map, single_map
from msgspec.structs import replace

from gluonmap.model.errors import StorageFault, UsageError
from gluonmap.model.joint_map import UNCOMPARED, Constraint, Inertness, Standing
from gluonmap.model.knobs import KnobClass
from gluonmap.model.relations import AllOf, Member, Nogood
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.constraint_graph import _dot, _graphml, components, constraint_graph, layout, write_graph

HOSTILE = '<a & b> "c" \'d\' \\N \\" \n\t]]> \r\0\x1b[31m\ud800 \ufffe é 🜚'
SPELLED = '<a & b> "c" \'d\' \\N \\" \n\t]]> \\r\\x00\\x1b[31m\\ud800 \\ufffe é 🜚'


def mapped() -> SpaceMap:
    """M, N and STAGES share a budget, MODE has a constraint of its own, nothing ties FLAG."""
    budget = replace(constraint(BUDGET, reason="81,920 bytes > 65,536"), line="k.py:7", failed=3, passed=9)
    mode = replace(constraint(Member("MODE", (None, ".cg")), Standing.GIVEN), reason="", confirmed=False)
    only = Inertness("STAGES", "M >= 64", "STAGES matters only if M >= 64", 2, 2, Member("M", (64, 128)))
    space = joint_map([BUDGET], constraints=[budget, mode], inertness=[only, Inertness("FLAG", "", "no", 0, 3)])
    knobs = {**space.knobs, "MODE": replace(space.knobs["MODE"], knob_class=KnobClass.PINNED)}
    return replace(space, knobs=knobs)


def test_knobs_and_constraints_are_two_sides_and_scopes_are_edges() -> None:
    graph = constraint_graph(mapped())
    assert nx.bipartite.is_bipartite(graph)
    assert {n for n, side in graph.nodes(data="bipartite") if side == 0} == {"M", "N", "STAGES", "FLAG", "MODE"}
    assert {tuple(sorted(edge)) for edge in graph.edges} == {
        ("M", "constraint 1"), ("N", "constraint 1"), ("STAGES", "constraint 1"), ("MODE", "constraint 2"),
    }  # fmt: skip


def test_nodes_say_what_a_reader_needs() -> None:
    graph = constraint_graph(mapped())
    assert graph.nodes["STAGES"] == {
        "bipartite": 0, "class": "live", "kind": "constexpr", "baseline": "2", "values": "1, 2, 3, 4",
        "matters": "only if M >= 64", "component": 1,
    }  # fmt: skip
    assert graph.nodes["constraint 1"] == {
        "bipartite": 1, "words": "M * N * STAGES <= 8192", "standing": "learned", "reason": "81,920 bytes > 65,536",
        "line": "k.py:7", "failed": 3, "passed": 9, "confirmed": True,
    }  # fmt: skip
    assert (graph.nodes["FLAG"]["matters"], graph.nodes["FLAG"]["flag"]) == ("never", "inert")


def test_a_knob_that_was_not_compared_everywhere_has_no_condition() -> None:
    partly = Inertness("FLAG", UNCOMPARED, "FLAG changed nothing where it was compared", 0, 2)
    assert "matters" not in constraint_graph(joint_map(inertness=[partly])).nodes["FLAG"]


def test_a_knob_is_pinned_only_while_no_other_value_ever_passed() -> None:
    space = mapped()
    assert "flag" not in constraint_graph(space).nodes["MODE"]
    failing = tuple(v if v.value is None else replace(v, outcome="CRASHED") for v in space.knobs["MODE"].values)
    pinned = replace(space, knobs={**space.knobs, "MODE": replace(space.knobs["MODE"], values=failing)})
    assert constraint_graph(pinned).nodes["MODE"]["flag"] == "pinned"


def test_knobs_that_no_constraint_ties_are_alone() -> None:
    assert components(mapped()) == (frozenset({"M", "N", "STAGES"}), frozenset({"FLAG"}), frozenset({"MODE"}))
    assert components(single_map()) == tuple(frozenset({n}) for n in ("M", "N", "STAGES", "FLAG", "MODE"))


def hostile(text: str) -> SpaceMap:
    space = mapped()
    assert space.joint is not None
    constraints = tuple(replace(item, reason=text, words=text) for item in space.joint.constraints)
    return replace(space, kernel=text, joint=replace(space.joint, constraints=constraints))


def test_graphml_brings_back_every_attribute(tmp_path: Path) -> None:
    space = hostile(HOSTILE)
    write_graph(space, tmp_path / "graph.graphml")
    read = nx.read_graphml(tmp_path / "graph.graphml")
    graph = constraint_graph(space)
    assert dict(read.nodes(data=True)) == dict(graph.nodes(data=True))
    assert {frozenset(edge) for edge in read.edges} == {frozenset(edge) for edge in graph.edges}
    assert read.nodes["constraint 1"]["reason"] == SPELLED
    assert read.graph["kernel"] == SPELLED


def test_json_is_read_by_networkx(tmp_path: Path) -> None:
    space = hostile(HOSTILE)
    write_graph(space, tmp_path / "graph.json")
    data = json.loads((tmp_path / "graph.json").read_text())
    read = nx.node_link_graph({**data, "links": data["edges"]}, **_edges_key())
    assert nx.utils.graphs_equal(read, constraint_graph(space))


def _edges_key() -> dict[str, str]:
    return {"edges": "edges"} if tuple(map(int, nx.__version__.split(".")[:2])) >= (3, 4) else {}


STRING = r'"(?:[^"\\]|\\.)*"'


def dot_statements(text: str) -> list[str]:
    """The lines of a DOT file, each checked against the grammar of what is written here."""
    pair = f"{STRING}={STRING}"
    node, edge = rf"  {STRING} \[{pair}(?:, {pair})*\];", f"  {STRING} -- {STRING};"
    first, *lines, last, empty = text.split("\n")
    assert re.fullmatch(rf"graph {STRING} \{{", first)
    assert (last, empty) == ("}", "")
    assert all(re.fullmatch(f"{node}|{edge}", line) for line in lines)
    return lines


def test_dot_quotes_any_text(tmp_path: Path) -> None:
    write_graph(hostile(HOSTILE), tmp_path / "graph.dot")
    lines = dot_statements((tmp_path / "graph.dot").read_text())
    assert len(lines) == 5 + 2 + 4
    assert '"STAGES" -- "constraint 1";' in "\n".join(lines)
    assert any(r'"reason"="<a & b> \"c\" ' in line and r"'d' \\N \\\" \n" in line for line in lines)


@given(st.text(st.characters(), max_size=20))
def test_no_text_breaks_a_format(text: str) -> None:
    graph = constraint_graph(hostile(text))
    dot_statements(_dot(graph))
    read = nx.parse_graphml(_graphml(graph).decode())
    assert dict(read.nodes(data=True)) == dict(graph.nodes(data=True))


def test_other_suffixes_are_refused_with_those_that_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.graphml, \.dot, \.json, not \.png"):
        write_graph(mapped(), tmp_path / "graph.png")


def test_a_file_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFault):
        write_graph(mapped(), tmp_path / "file" / "graph.dot")


def test_a_scope_that_names_no_knob_makes_no_node() -> None:
    strange: dict[str, Any] = {"scope": ("M", "EXTRA")}
    item: Constraint = replace(constraint(BUDGET), **strange)
    graph = constraint_graph(joint_map(constraints=[item]))
    assert "EXTRA" not in graph


# --- the picture ------------------------------------------------------------------------------------------------------


def test_the_picture_has_a_block_for_each_component() -> None:
    space = mapped()
    failing = tuple(v if v.value is None else replace(v, outcome="CRASHED") for v in space.knobs["MODE"].values)
    pinned = replace(space, knobs={**space.knobs, "MODE": replace(space.knobs["MODE"], values=failing)})
    assert [(b.flag, set(b.knobs), b.constraints, b.conditions) for b in layout(pinned)] == [
        ("", {"M", "N", "STAGES"}, (0,), (0,)),
        ("pinned", {"MODE"}, (1,), ()),
        ("inert", {"FLAG"}, (), ()),
    ]


def test_edges_connect_knobs_and_their_readers() -> None:
    block = layout(mapped())[0]
    assert set(block.edges) == {
        ("M", "constraint 0"), ("N", "constraint 0"), ("STAGES", "constraint 0"),
        ("STAGES", "condition 0"), ("M", "condition 0"),
    }  # fmt: skip


def test_demands_that_add_nothing_and_many_single_failures_are_not_drawn() -> None:
    read = replace(constraint(BUDGET, Standing.READ), confirmed=False)
    implied = constraint(BUDGET, Standing.IMPLIED)
    lone = [constraint(Nogood((("M", m), ("N", n)))) for m in (16, 32, 64) for n in (16, 32, 64)]
    assert [b.constraints for b in layout(joint_map(constraints=[read, implied]))] == [()] * 5
    assert [b.constraints for b in layout(joint_map(constraints=lone))] == [()] * 5
    assert layout(joint_map(constraints=lone[:2]))[0].constraints == (0, 1)


def test_each_side_is_ordered_so_that_few_edges_cross() -> None:
    names = ("M", "N", "STAGES", "FLAG", "MODE")
    constraints = [constraint(AllOf((Member(a, ()), Member(b, ())))) for a, b in (names[3:], names[:2], names[1:3])]
    constraints.append(constraint(AllOf((Member("STAGES", ()), Member("FLAG", ())))))
    block = layout(joint_map(constraints=constraints))[0]
    # A chain of five knobs and four constraints can be drawn without a crossing.
    at = {name: place for place, name in enumerate((*block.knobs,))} | {n: p for p, n in enumerate(block.order)}
    edges = [(at[one], at[other]) for one, other in block.edges]
    assert not [1 for (a, b), (c, d) in itertools.combinations(edges, 2) if (a - c) * (b - d) < 0]


def test_the_same_map_gives_the_same_picture() -> None:
    assert layout(mapped()) == layout(mapped())
