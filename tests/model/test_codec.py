"""Stored maps: the same value gives the same bytes, and what contradicts itself is no map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from maps import joint_map, tried

from gluonmap.model import codec
from gluonmap.model.candidate import Stage
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Joint
from gluonmap.model.relations import AnyOf, Compare, KnobTerm, Max, Nogood, Number, Op, Relation, RoundUp, Written
from gluonmap.model.space_map import ExecutedStage, SpaceMap


def stored(tmp_path: Path, space: SpaceMap) -> Path:
    path = tmp_path / "map.json"
    codec.write(path, codec.dumps(space))
    return path


def test_a_map_that_was_written_is_read_as_it_was(tmp_path: Path) -> None:
    space = joint_map(tried=[tried({"M": 64})])
    assert codec.read_map(stored(tmp_path, space)) == space


def test_a_map_with_a_former_key_is_read_as_one_with_its_key_today(tmp_path: Path) -> None:
    space = msgspec.structs.replace(joint_map(), execution=ExecutedStage(Stage.RUN, "the CPU"))
    path = stored(tmp_path, space)
    text = path.read_text()
    assert text.count('"execution": {') == 1
    path.write_text(text.replace('"execution": {', '"on_device": {'))
    assert codec.read_map(path) == space


def test_no_key_of_a_map_today_is_a_former_one() -> None:
    keys = {field.encode_name for field in msgspec.structs.fields(SpaceMap)}
    assert set(codec.RENAMED_KEYS.values()) <= keys
    assert not codec.RENAMED_KEYS.keys() & keys


def test_what_fits_stands_on_one_line_and_nothing_is_wider_that_could_be_broken() -> None:
    text = codec.dumps({"short": [1, 2, 3], "long": [{"a": "x" * 70}, {"b": "y" * 70}]}).decode()
    assert '"short": [1, 2, 3]' in text
    assert max(map(len, text.splitlines())) <= codec.LINE


def edited(change: Callable[[Joint], Joint]) -> SpaceMap:
    space = joint_map(tried=[tried({"M": 64})])
    assert space.joint is not None
    return msgspec.structs.replace(space, joint=change(space.joint))


def with_relation(relation: Relation) -> Callable[[Joint], Joint]:
    def change(joint: Joint) -> Joint:
        first = msgspec.structs.replace(joint.constraints[0], relation=relation)
        return msgspec.structs.replace(joint, constraints=(first,))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda j: msgspec.structs.replace(j, domains=dict(list(j.domains.items())[1:])), "domains and the baseline"),
        (lambda j: msgspec.structs.replace(j, domains=dict.fromkeys(j.domains, ())), "is empty"),
        (lambda j: msgspec.structs.replace(j, tried=(msgspec.structs.replace(j.tried[0], values=(1,)),)), "one value"),
        (with_relation(AnyOf(())), "no parts"),
        (with_relation(Nogood(())), "no cells"),
        (with_relation(Compare(Max(()), Op.AT_MOST, Number(1))), "no parts"),
        (with_relation(Compare(RoundUp(KnobTerm("M"), 0), Op.AT_MOST, Number(1))), "multiple of nothing"),
        (with_relation(Written("max(" + "M," * 20_000 + "1) > 0")), "too long"),
    ],
)
def test_a_map_that_contradicts_itself_is_no_map(tmp_path: Path, change: Callable[[Joint], Joint], said: str) -> None:
    with pytest.raises(UsageError, match=f"is no map: .*{said}"):
        codec.read_map(stored(tmp_path, edited(change)))


def test_a_map_nested_without_end_is_no_map(tmp_path: Path) -> None:
    path = stored(tmp_path, joint_map())
    deep = '{"type":"any","parts":[' * 2000 + '{"type":"nogood","cells":[]}' + "]}" * 2000
    text = path.read_text()
    start = text.index('"relation":') + len('"relation":')
    end, depth = start, 0
    while True:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if depth == 0 and text[end - 1] == "}":
            break
    path.write_text(text[:start] + deep + text[end:])
    with pytest.raises(UsageError, match="is no map"):
        codec.read_map(path)


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "map.json"
    folder.mkdir()
    (folder / "inside").touch()
    with pytest.raises(Exception, match="cannot write"):
        codec.write(folder, b"{}")
    assert [p.name for p in tmp_path.iterdir()] == ["map.json"]
