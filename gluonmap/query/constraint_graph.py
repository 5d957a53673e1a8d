"""The constraint graph of a map: knobs on one side, constraints on the other. No other module imports networkx."""

from __future__ import annotations

import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gluonmap.constraints.semantics import scope_of
from gluonmap.model import codec
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Constraint, Standing
from gluonmap.model.knobs import KnobClass
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.constraint_summary import constraint_summary
from gluonmap.query.feasibility import Judge, domains_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import networkx as nx

SUFFIXES = (".graphml", ".dot", ".json")

# What XML 1.0 cannot hold even when escaped, and the carriage return, which every XML reader turns into a newline.
_NOT_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def constraint_graph(space: SpaceMap) -> nx.Graph:
    """Return the bipartite graph of knobs (`bipartite` 0) and constraints (1), an edge where a constraint reads a knob.

    A knob's node has the knob's name. Its attributes say when the knob matters, its component, and by `flag` that it
    is pinned (no other value ever passed) or inert. Constraints are "constraint 1" and so on, in the map's order.
    Attributes are text, integers or booleans, and absent where they would be empty. Characters that XML cannot hold
    are written as Python escapes. A map without a joint part has no constraints.
    """
    import networkx as nx

    domains = domains_of(space)
    passing = list(Judge(space).passing())
    graph = nx.Graph(kernel=_text(space.kernel), target=space.target, triton=space.triton)
    for name, values in domains.items():
        passed = {repr(config[name]) for config in passing}
        graph.add_node(name, bipartite=0, **_knob(space, name, values, passed))
    for number, constraint in enumerate(space.joint.constraints if space.joint else (), 1):
        node = f"constraint {number}"  # a space: no parameter can be called so
        graph.add_node(node, bipartite=1, **_constraint(constraint))
        graph.add_edges_from((name, node) for name in constraint.scope if name in domains)
    for number, names in enumerate(_components(graph, domains), 1):
        for name in names:
            graph.nodes[name]["component"] = number
    return graph


def components(space: SpaceMap) -> tuple[frozenset[str], ...]:
    """Return the sets of knobs that constraints connect, in signature order; an unconstrained knob is a set of one.

    Feasibility can be decided for each set by itself. The fastest configuration may still depend on all knobs.
    """
    return _components(constraint_graph(space), domains_of(space))


def write_graph(space: SpaceMap, path: Path) -> None:
    """Write the constraint graph in the format that the suffix names: GraphML, DOT, or node-link JSON.

    Raises:
        UsageError: another suffix.
        StorageFault: the file cannot be written.
    """
    graph = constraint_graph(space)
    match path.suffix:
        case ".graphml":
            codec.write(path, _graphml(graph))
        case ".dot":
            codec.write(path, _dot(graph).encode())
        case ".json":
            codec.write(path, codec.dumps(_node_link(graph)))
        case suffix:
            raise UsageError(f"a graph is written as {', '.join(SUFFIXES)}, not {suffix or 'without a suffix'}: {path}")


# ---- the drawing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphBlock:
    """One block of the drawing: a column of connected knobs, and a column of the constraints that connect them."""

    flag: str
    """"pinned" or "inert" if the block is set aside for that, else ""."""
    knobs: tuple[str, ...]
    constraints: tuple[int, ...]
    """Places in the map's constraints."""
    conditions: tuple[int, ...]
    """Places in the map's inertness rules: a knob matters only where others have certain values."""
    edges: tuple[tuple[str, str], ...]
    """Pairs of a knob and "constraint 0" or "condition 0", numbered by place."""
    order: tuple[str, ...]
    """Constraints and conditions from top to bottom."""


def layout(space: SpaceMap) -> tuple[GraphBlock, ...]:
    """Return the constraint graph as blocks to draw: largest first, pinned and inert knobs last.

    A block is a component of the graph with its conditions, so knobs of two blocks are independent. Within a block,
    each side is ordered by the mean place of its neighbours, so that few edges cross. Constraints that others imply,
    or that no asked configuration breaks, are left out. The same map gives the same blocks.
    """
    import networkx as nx

    flags = constraint_graph(space).nodes(data="flag", default="")
    domains = domains_of(space)
    graph = nx.Graph()
    graph.add_nodes_from(domains)
    for name, tied in _tying(space):
        graph.add_edges_from((knob, name) for knob in domains if knob in tied)
    place = {name: number for number, name in enumerate(graph)}
    blocks = []
    for members in nx.connected_components(graph):
        knobs = [name for name in sorted(members, key=place.__getitem__) if name in domains]
        ties = [name for name in sorted(members, key=place.__getitem__) if name not in domains]
        knobs, ties = _uncrossed(graph, knobs, ties)
        flag = flags[knobs[0]] if len(knobs) == 1 else ""
        edges = tuple((knob, tie) for knob in knobs for tie in ties if graph.has_edge(knob, tie))
        numbers = {kind: tuple(int(t.split()[1]) for t in ties if t.startswith(kind)) for kind in _KINDS}
        blocks.append(GraphBlock(flag, tuple(knobs), numbers["constraint"], numbers["condition"], edges, tuple(ties)))
    rank = ["", "pinned", "inert"]
    return tuple(sorted(blocks, key=lambda b: (rank.index(b.flag), -len(b.knobs), not b.order, place[b.knobs[0]])))


_KINDS = ("constraint", "condition")


def _tying(space: SpaceMap) -> Iterator[tuple[str, Collection[str]]]:
    """Yield each constraint and condition to draw, with the knobs that it reads."""
    if space.joint is None:
        return
    for number in constraint_summary(space.joint).shown:
        item = space.joint.constraints[number]
        if item.standing is not Standing.IMPLIED:
            yield f"constraint {number}", item.scope
    for number, rule in enumerate(space.joint.inertness):
        if rule.relation is not None:
            yield f"condition {number}", {rule.knob, *scope_of(rule.relation)}


def _uncrossed(graph: nx.Graph, knobs: list[str], ties: list[str]) -> tuple[list[str], list[str]]:
    """Return both sides in an order with few crossings: the barycentre heuristic, the best of `SWEEPS` sweeps."""
    best = knobs, ties
    fewest = _crossings(graph, *best)
    for _ in range(SWEEPS):
        ties = _by_mean(graph, ties, knobs)
        knobs = _by_mean(graph, knobs, ties)
        if (crossed := _crossings(graph, knobs, ties)) < fewest:
            best, fewest = (knobs, ties), crossed
    return best


SWEEPS = 8
"""Number of times that both sides are ordered by the mean place of their neighbours."""


def _by_mean(graph: nx.Graph, moving: list[str], fixed: list[str]) -> list[str]:
    at = {name: number / max(1, len(fixed) - 1) for number, name in enumerate(fixed)}
    means = {name: _mean([at[other] for other in graph[name]]) for name in moving}
    return sorted(moving, key=lambda name: round(means[name], 9))


def _mean(numbers: list[float]) -> float:
    return sum(sorted(numbers)) / len(numbers) if numbers else 0.0


def _crossings(graph: nx.Graph, knobs: list[str], ties: list[str]) -> int:
    edges = [(k, t) for k, knob in enumerate(knobs) for t, tie in enumerate(ties) if graph.has_edge(knob, tie)]
    return sum((k - m) * (t - u) < 0 for (k, t), (m, u) in itertools.combinations(edges, 2))


def _components(graph: nx.Graph, names: dict[str, tuple[Value, ...]]) -> tuple[frozenset[str], ...]:
    import networkx as nx

    found: dict[frozenset[str], None] = {}
    for name in names:
        tied = nx.node_connected_component(graph, name)
        found[frozenset(n for n in tied if n in names)] = None
    return tuple(found)


# ---- attributes -----------------------------------------------------------------------------------------------------


def _knob(space: SpaceMap, name: str, values: tuple[Value, ...], passing: set[str]) -> dict[str, Any]:
    knob = space.knobs.get(name)
    matters = _matters(space, name)
    pinned = knob is not None and knob.knob_class is KnobClass.PINNED and len(passing) == 1
    return _not_empty(
        {
            "class": knob.knob_class.value if knob else "",
            "kind": knob.kind.value if knob else "",
            "baseline": repr(space.baseline[name]),
            "values": ", ".join(map(repr, values)),
            "matters": matters,
            "flag": "pinned" if pinned else "inert" if matters == "never" else "",
        }
    )


def _matters(space: SpaceMap, name: str) -> str:
    """Return when the knob changes the program: "never", "always", "sometimes" or "only if …"; "" if unknown."""
    for item in space.joint.inertness if space.joint else ():
        if item.knob == name:
            if item.uncompared:
                return ""
            plain = item.condition in ("always", "sometimes")
            return item.condition if plain else f"only if {item.condition}" if item.condition else "never"
    knob = space.knobs.get(name)
    return "never" if knob and knob.knob_class is KnobClass.INERT else ""


def _constraint(constraint: Constraint) -> dict[str, Any]:
    return _not_empty(
        {
            "words": constraint.words,
            "standing": constraint.standing.value,
            "reason": constraint.reason,
            "line": constraint.line,
            "stage": constraint.stage,
            "outcome": constraint.outcome,
            "failed": constraint.failed,
            "passed": constraint.passed,
            "confirmed": constraint.confirmed,
        }
    )


def _not_empty(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that are not empty, in characters that every format holds.

    GraphML readers drop empty attributes.
    """
    return {k: _text(v) if isinstance(v, str) else v for k, v in attributes.items() if v != ""}


def _text(text: str) -> str:
    return _NOT_IN_XML.sub(lambda found: ascii(found[0])[1:-1], text)


# ---- formats --------------------------------------------------------------------------------------------------------


def _graphml(graph: nx.Graph) -> bytes:
    import networkx as nx

    # write_graphml would use lxml where it is installed, and then the bytes would depend on the environment.
    buffer = io.BytesIO()
    nx.write_graphml_xml(graph, buffer)
    return buffer.getvalue()


def _node_link(graph: nx.Graph) -> dict[str, Any]:
    """Return the graph for `networkx.node_link_graph(…, edges="edges")`.

    networkx's own writer is not used: its key for edges differs between versions.
    """
    return {
        "directed": False,
        "multigraph": False,
        "graph": graph.graph,
        "nodes": [{**attributes, "id": node} for node, attributes in graph.nodes.items()],
        "edges": [{"source": one, "target": other} for one, other in graph.edges],
    }


def _dot(graph: nx.Graph) -> str:
    lines = [f"graph {_quoted(graph.graph['kernel'] + ' on ' + graph.graph['target'])} {{"]
    for node, attributes in graph.nodes.items():
        look = _look(node, attributes)
        pairs = ", ".join(f"{_quoted(key)}={_quoted(str(value))}" for key, value in {**look, **attributes}.items())
        lines.append(f"  {_quoted(node)} [{pairs}];")
    lines += [f"  {_quoted(one)} -- {_quoted(other)};" for one, other in graph.edges]
    return "\n".join([*lines, "}", ""])


def _look(node: str, attributes: dict[str, Any]) -> dict[str, str]:
    if attributes["bipartite"] == 1:
        return {"label": attributes.get("words", node), "shape": "box"}
    flag = attributes.get("flag", "")
    return {"label": f"{node}\n{flag or attributes['values']}", "style": "dashed" if flag else "solid"}


def _quoted(text: str) -> str:
    r"""Return a DOT string. Backslashes are doubled, because Graphviz interprets \n, \N and so on in labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
