from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gluonmap.constraints.expressions import evaluate, names_in
from gluonmap.model.errors import UsageError

CONFIG = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "cache": None, "mode": "fast"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("BLOCK_M * BLOCK_N", 8192),
        ("BLOCK_M // num_warps", 16),
        ("7 % 4", 3),
        ("1 / 4", 0.25),
        ("2 ** 10", 1024),
        ("-BLOCK_N", -64),
        ("BLOCK_M > BLOCK_N", True),
        ("0 < num_warps <= 8", True),
        ("0 < num_warps < 8", False),
        ("BLOCK_M == 128 and num_warps == 4", False),
        ("BLOCK_M == 64 or num_warps == 8", True),
        ("not cache", True),
        ("cache == None", True),
        ("1 if mode == 'fast' else 2", 1),
        ("num_warps in (4, 8)", True),
        ("num_warps not in (4, 8)", False),
        ("(cdiv(1000, BLOCK_M), 1)", (8, 1)),
        ("min(BLOCK_M, BLOCK_N, 100)", 64),
        ("max(BLOCK_M, 3)", 128),
        ("abs(-3)", 3),
        ("next_power_of_2(100)", 128),
        ("next_power_of_2(128)", 128),
        ("next_power_of_2(0)", 0),
        ("int(7 / 2)", 3),
        ("'a'", "a"),
        ("1.5", 1.5),
        ("()", ()),
    ],
)
def test_the_value_of_an_expression_is_pythons(text: str, value: object) -> None:
    assert evaluate(text, CONFIG) == value


def test_the_side_that_and_or_if_do_not_need_is_never_evaluated() -> None:
    assert evaluate("True or 1 // 0", {}) is True
    assert evaluate("False and unknown", {}) is False
    assert evaluate("1 if True else 1 // 0", {}) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("BLOCK_K + 1", "unknown name 'BLOCK_K'"),
        ("BLOCK_M +", "bad syntax"),
        ("", "bad syntax"),
        ("BLOCK_M // 0", "zero"),
        ("2 ** 100000", "2 ** 100000 is too large"),
        ("2 ** 2000 * 2 ** 2000 * 2 ** 2000", "a number is too large"),
        ("10.0 ** 400", "a number is too large"),
        ("(-8) ** 0.5", "is no real number"),
        ("open('x')", "'open' is no function of the language"),
        ("BLOCK_M.bit_length()", "'BLOCK_M.bit_length' is no function"),
        ("mode.upper", "'mode.upper' is not part of the language"),
        ("[1, 2]", "'[1, 2]' is not part of the language"),
        ("BLOCK_M & 1", "'BLOCK_M & 1' is not part of the language"),
        ("(lambda: 1)()", "is no function of the language"),
        ("cache is None", "write == or !="),
        ("'a' * 1000", "'a' is not a number"),
        ("'a' < 1", "not supported"),
        ("1 in 2", "'in' needs a tuple, not 2"),
        ("max(*mode)", "plain arguments only"),
        ("cdiv(1.5, 2)", "whole numbers"),
        ("cdiv(1)", "missing"),
        ("b'x'", "not part of the language"),
    ],
)
def test_what_has_no_value_says_what_broke_it(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        evaluate(text, CONFIG)
    assert reason in str(error.value)


@pytest.mark.parametrize("text", ["(" * 5000 + ")" * 5000, "1" + " + 1" * 50000, "-" * 50000 + "1", "9" * 5000, "\0"])
def test_text_made_to_exhaust_the_parser_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        evaluate(text, {})


def test_an_error_names_the_expression_and_the_known_names() -> None:
    with pytest.raises(UsageError) as error:
        evaluate("BLOCK_K > 1", {"BLOCK_M": 1, "BLOCK_N": 2})
    assert str(error.value) == "'BLOCK_K > 1' has no value: unknown name 'BLOCK_K' (known names: BLOCK_M, BLOCK_N)."


def test_names_in_leaves_functions_out() -> None:
    assert names_in("cdiv(M, BLOCK_M) * min(a, 2) if x in (y,) else 3") == {"M", "BLOCK_M", "a", "x", "y"}


def test_names_in_refuses_bad_syntax() -> None:
    with pytest.raises(UsageError, match="is no expression: bad syntax"):
        names_in("BLOCK_M >")


def texts() -> st.SearchStrategy[str]:
    leaves = st.integers(0, 50).map(str) | st.sampled_from(["a", "b", "c"])

    def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        symbols = st.sampled_from(["+", "-", "*", "//", "%", "/", "==", "!=", "<", "<=", ">", ">=", "and", "or"])
        return (
            st.builds(lambda left, symbol, right: f"({left} {symbol} {right})", parts, symbols, parts)
            | st.builds(lambda part: f"(-{part})", parts)
            | st.builds(lambda part: f"(not {part})", parts)
            | st.builds(lambda test, one, other: f"({one} if {test} else {other})", parts, parts, parts)
            | st.builds(lambda one, other: f"max({one}, {other})", parts, parts)
        )

    return st.recursive(leaves, larger, max_leaves=12)


@given(texts(), st.integers(-40, 40), st.integers(-40, 40), st.integers(0, 3))
def test_evaluate_agrees_with_python(text: str, a: int, b: int, c: int) -> None:
    names = {"a": a, "b": b, "c": c}
    try:
        expected = eval(text, {"max": max}, dict(names))
    except (ArithmeticError, TypeError):
        with pytest.raises(UsageError):
            evaluate(text, names)
        return
    assert evaluate(text, names) == expected
