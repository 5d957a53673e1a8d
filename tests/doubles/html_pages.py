"""HTML pages parsed into elements, and maps whose text tries to become markup."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

import msgspec
from maps import BUDGET, constraint, joint_map, tried
from msgspec.structs import replace
from report_maps import MXFP4

from gluonmap.model.joint_map import (
    Certificate,
    CoverageCount,
    Inertness,
    Joint,
    Sizes,
    StratumCertificate,
    Verified,
)
from gluonmap.model.noise import Comparison, Interval
from gluonmap.model.noise import RaceStanding as Verdict
from gluonmap.model.race_record import Finalist, RaceRecord
from gluonmap.model.relations import Member
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources

VOID = {"meta", "link", "br", "wbr"}


APART = {"dt", "dd", "td", "th", "li", "title", "text"}
"""Elements whose text stands apart from what follows."""


@dataclass
class Element:
    """One element, its text with that of all within it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[Element] = field(default_factory=list)

    def all(self, tag: str = "", name: str = "") -> list[Element]:
        """The elements within it of a tag and a class, in order."""
        found = []
        for element in self.inside:
            if tag in ("", element.tag) and (not name or name in element.attributes.get("class", "").split()):
                found.append(element)
            found += element.all(tag, name)
        return found

    def identified(self, id_: str) -> Element:
        return next(element for element in self.all() if element.attributes.get("id") == id_)


class Reader(HTMLParser):
    """Reads strictly: every tag is closed in its turn, no attribute stands twice."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()
        if tag in APART:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read(data: bytes) -> Element:
    reader = Reader()
    reader.feed(data.decode())
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.root


def flat(text: str) -> str:
    return " ".join(text.split())


def section(root: Element, anchor: str) -> Element:
    return next(s for s in root.all("section") if s.attributes.get("aria-labelledby") == anchor)


TAKES = Resources(256, 49_152, 120, 0, 40, 0, 0, 0, code_bytes=4_096, occupancy=4)


SPILLS = msgspec.structs.replace(TAKES, spills=42, scratch_bytes=168)


def together(**more: object) -> SpaceMap:
    """A map with a joint part that has something of everything."""
    budget = replace(
        constraint(BUDGET, reason="81,920 bytes > 65,536"),
        line="k.py:7",
        stage="llir",
        outcome="NO_RESOURCES",
        failed=3,
        passed=9,
        failing_example={"M": 128, "N": 128, "STAGES": 2, "FLAG": True, "MODE": None},
        passing_example={"M": 128, "N": 32, "STAGES": 2, "FLAG": True, "MODE": None},
        alternatives=("M + N <= 96",),
    )
    only = Inertness("STAGES", "FLAG = True", "STAGES matters only if FLAG = True", 2, 3, Member("FLAG", (True,)))
    space = joint_map(
        constraints=[budget],
        inertness=[only, Inertness("MODE", "", "nothing", 0, 7)],
        tried=[tried({}, digest="a"), tried({"M": 128, "N": 128}, "NO_RESOURCES"), tried({"N": 64}, "HUNG")],
    )
    assert space.joint is not None
    joint = replace(
        space.joint,
        sizes=Sizes(384, 300, 100),
        programs=(
            Verified(space.baseline, "aa01", TAKES, same=3),
            Verified({**space.baseline, "M": 64}, "bb02", SPILLS),
        ),
        certificate=Certificate(
            0.95,
            1,
            (
                StratumCertificate("predicted to pass", 70, 66, 300, False, 0.042),
                StratumCertificate("predicted to fail", 84, 84, 84, True, 0.0),
            ),
            ("predicted to pass (300 configurations): 70 draws", "Every value pair was seen passing."),
        ),
        coverage=(CoverageCount(1, 14, 15), CoverageCount(2, 60, 80)),
        learning=30,
        validating=20,
    )
    fields = {"joint": joint, "digest": "aa01", "repeat": "gluonmap repeat reports/double.json"} | more
    return replace(space, **fields)


def finalist(config: dict, median: float, ratio: Interval, standing: Verdict, leads: bool) -> Finalist:
    return Finalist(config, "d", median, median - 5, median + 5, Comparison(standing, ratio, 0.004), TAKES, leads)


def raced(space: SpaceMap, **more: object) -> RaceRecord:
    base = dict(space.baseline)
    one, fast = Interval(1, 1, 1, 0.96, 15), Interval(0.9, 0.88, 0.92, 0.96, 15)
    near = Interval(0.999, 0.99, 1.002, 0.96, 15)
    fields = {
        "kernel": space.kernel, "file": space.file, "target": space.target, "shape": {"M": 4096}, "device": "MI300X",
        "driver": "6.2", "triton": "3.9.0", "torch": "2.9", "clocks_mhz": (2100, 1900), "configurations": 3,
        "compile_seconds": 1.5, "compile_jobs": 2, "race_seconds": 0.5, "timed_by": "gluonmap", "rounds": 15,
        "floor": 0.004, "floor_from": "the baseline twice", "autotuner": {**base, "M": 64},
        "winner": {**base, "M": 64}, "verdict": "win: 10.0 % faster than the baseline",
        "finalists": (
            finalist(base, 100.0, one, Verdict.TIE, False),
            finalist({**base, "M": 64}, 90.0, fast, Verdict.WIN, True),
            finalist({**base, "M": 16}, 99.9, near, Verdict.TIE, False),
        ),
        "raced_us": ((base, 101.0), ({**base, "M": 64}, 91.0), ({**base, "M": 16}, None)),
        "failures": (({**base, "M": 16}, "out of <resources>"),),
    }  # fmt: skip
    return RaceRecord(**(fields | more))


HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)> & &amp; \"' --> \x1b[31m \x00 \ud800 ‮"


def hostile(text: str) -> SpaceMap:
    """A map in which every text of a compiler, a file or a user is this one."""
    space = together()
    assert isinstance(space.joint, Joint)
    values = [
        replace(
            v, reason=text, kind=text, stage=text, file=text, line=3, because=(text,), warnings=(text,), repeat=text
        )
        for v in MXFP4.knobs["BLOCK_SIZE_M"].values
    ]
    knob = replace(MXFP4.knobs["BLOCK_SIZE_M"], why=text, values=tuple(values))
    names = {"M": text}
    joint = replace(
        space.joint,
        domains={names.get(n, n): v for n, v in space.joint.domains.items()},
        constraints=tuple(
            replace(c, words=text, reason=text, line=text, scope=(text,), alternatives=(text,))
            for c in space.joint.constraints
        ),
        inertness=tuple(replace(i, condition=text, words=text) for i in space.joint.inertness),
        programs=tuple(replace(p, digest=text, config={}) for p in space.joint.programs),
        notes=(text,),
        formula="",
    )
    return replace(
        space,
        kernel=text,
        file=text,
        triton=text,
        specialisation={text: text},
        baseline={names.get(n, n): v for n, v in space.baseline.items()},
        knobs={text: knob},
        joint=joint,
        literals=(text,),
        notes=(text,),
        fixed={text: text},
        not_probed={text: text},
        repeat=text,
    )
