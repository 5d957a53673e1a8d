"""Hashes of a syntax tree."""

from __future__ import annotations

from gluonmap.source.syntax import tree_hash


def test_comments_docstrings_and_blank_lines_do_not_change_the_hash() -> None:
    bare = "def f(a):\n    return a + 1\n"
    dressed = '"""Module."""\n\n\n# why\ndef f(a):\n    """Doc."""\n\n    return (a + 1)  # one more\n'
    assert tree_hash(bare) == tree_hash(dressed)


def test_another_constant_changes_the_hash() -> None:
    assert tree_hash("x = 1") != tree_hash("x = 2")
    assert tree_hash("x = 1") != tree_hash("x = True")
    assert tree_hash("x = 1") != tree_hash("x = 1.0")
    assert tree_hash("x = None") != tree_hash("x = ...")


def test_another_name_changes_the_hash() -> None:
    assert tree_hash("def f(): pass") != tree_hash("def g(): pass")


def test_text_that_does_not_parse_is_hashed_as_it_is() -> None:
    assert tree_hash("def (") == tree_hash("def (")
    assert tree_hash("def (") != tree_hash("def ( ")
    assert len(tree_hash("def (")) == 16
