"""An interpreter of the pseudo-code of AMD's ISA documents, as tinygrad's tables hold it.

It computes one lane at a time, on Python's integers and exact fractions. It shares no code with gluonmap.cdna. Unknown
text raises `NotRead`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any


class NotRead(Exception):
    """The pseudo-code has an unknown word."""


@dataclass(frozen=True)
class Value:
    """`bits` of `width`; kind u, i (signed), f, bf (bfloat16), or b."""

    bits: int
    kind: str
    width: int

    @property
    def number(self) -> Any:
        """The value as an int, or a float (exact for every width)."""
        if self.kind in ("f", "bf"):
            return _decoded(self.bits, self.kind, self.width)
        if self.kind == "i" and self.bits >> (self.width - 1):
            return self.bits - (1 << self.width)
        return self.bits

    @property
    def real(self) -> bool:
        return self.kind in ("f", "bf")


_PACK = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}
_SHAPES = {("f", 16): (11, -14), ("f", 32): (24, -126), ("f", 64): (53, -1022), ("bf", 16): (8, -126)}
"""Kind, width → bits of the significand, least normal exponent."""


def _decoded(bits: int, kind: str, width: int) -> float:
    if kind == "bf":
        bits, width = bits << 16, 32
    value, raw = _PACK[width]
    return float(struct.unpack(value, struct.pack(raw, bits))[0])


def rounded(number: Any, kind: str, width: int, toward_zero: bool = False) -> Value:
    """Return the float of that type nearest to an int, float or Fraction, ties to even."""
    if isinstance(number, float) and (math.isnan(number) or math.isinf(number) or number == 0):
        negative = math.copysign(1, number) < 0
        exact: Any = None
    else:
        exact = Fraction(number)
        negative = exact < 0
    digits, least = _SHAPES[kind, width]
    bits = width if kind == "f" else 16
    sign = int(negative) << (bits - 1)
    infinite = ((1 << (bits - digits)) - 1) << (digits - 1)
    if exact is None:
        if math.isnan(number):
            return Value(infinite | 1 << (digits - 2), kind, width)
        return Value(sign | (infinite if math.isinf(number) else 0), kind, width)
    magnitude = abs(exact)
    if magnitude == 0:
        return Value(sign, kind, width)
    exponent = max(math.floor(math.log2(magnitude.numerator) - math.log2(magnitude.denominator)), least - 2)
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    while exponent > least and Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, least)
    scaled = magnitude / Fraction(2) ** (exponent - digits + 1)
    steps = math.floor(scaled) if toward_zero else round(scaled)
    # Steps carry into the exponent by themselves.
    code = steps if exponent == least and steps < 1 << (digits - 1) else ((exponent - least) << (digits - 1)) + steps
    limit = infinite - 1 if toward_zero else infinite
    return Value(sign | min(code, limit), kind, width)


_TOKEN = re.compile(
    r"\s*(//[^\n]*|\d+'(?=[A-Z]+[(;])|\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)[UIFB]?|0x[0-9a-fA-F]+(?:ULL|LL|U)?"
    r"|\d+\.\d+F?|\d+(?:ULL|LL|U)?|[A-Za-z_]\w*|\*\*|<>|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|[-+*/~!&|^<>=?:;,.(){}\[\]])"
)
_TYPE = re.compile(r"(u|i|f|bf|b)(\d+)$")
_BINARY = [("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", ">", "<=", ">=")]
_BINARY += [("<<", ">>"), ("+", "-"), ("*", "/"), ("**",)]

Names = dict[str, Value]
Code = Mapping[str, str]


class _Break(Exception):
    pass


class Machine:
    """An interpreter of pseudo-code. `code` is opcode → text, for opcodes that call each other."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.parsed: dict[str, Any] = {}

    def run(self, name: str, names: Names) -> Names:
        """Execute an opcode; return the names after it. S0, S1, S2, D0, SCC, VCC, EXEC and so on come in `names`."""
        if name not in self.parsed:
            if name not in self.code:
                raise NotRead(name)
            self.parsed[name] = _Parser(self.code[name]).block(())
        names = {"ROUND_MODE": _CONSTANTS["ROUND_NEAREST_EVEN"], **names}
        for statement in self.parsed[name]:
            statement(self, names)
        return names


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise NotRead(text[at : at + 20])
            if not match[1].startswith("//"):
                self.tokens.append(match[1])
            at = match.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if expected and token != expected:
            raise NotRead(f"{token} for {expected}")
        self.at += 1
        return token

    # Statements

    def block(self, ends: tuple[str, ...]) -> list[Any]:
        statements = []
        while self.peek() and self.peek() not in ends:
            if self.peek() == ";":
                self.take()
                continue
            statements.append(self.statement())
        return statements

    def statement(self) -> Any:
        match self.peek():
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "break":
                self.take()
                return _break
            case "declare":
                self.take()
                while self.peek() != ";":
                    self.take()
                return lambda machine, names: None
        target = self.target()
        operator = self.take()
        if operator not in ("=", "+=", "-="):
            raise NotRead(operator)
        if self.peek() == "lambda":
            raise NotRead("lambda")
        value = self.expression()

        def assign(machine: Machine, names: Names) -> None:
            result = value(machine, names)
            if operator != "=":
                result = _arithmetic(operator[0], target.get(machine, names), result)
            target.set(machine, names, result)

        return assign

    def _if(self) -> Any:
        branches: list[tuple[Any, list[Any]]] = []
        self.take("if")
        while True:
            condition = self.expression()
            self.take("then")
            branches.append((condition, self.block(("elsif", "else", "endif"))))
            word = self.take()
            if word == "else":
                branches.append((None, self.block(("endif",))))
                self.take("endif")
                break
            if word == "endif":
                break

        def run(machine: Machine, names: Names) -> None:
            for condition, body in branches:
                if condition is None or condition(machine, names).number:
                    for statement in body:
                        statement(machine, names)
                    return

        return run

    def _for(self) -> Any:
        self.take("for")
        name = self.take()
        self.take("in")
        first, last = int(self.take()), (self.take(":"), int(self.take()))[1]
        self.take("do")
        body = self.block(("endfor",))
        self.take("endfor")

        def run(machine: Machine, names: Names) -> None:
            for number in range(first, last + 1):
                names[name] = Value(number, "i", 32)
                try:
                    for statement in body:
                        statement(machine, names)
                except _Break:
                    return

        return run

    def target(self) -> _Target:
        name = self.take()
        if not re.match(r"[A-Za-z_]\w*$", name):
            raise NotRead(name)
        return _Target(name, self.suffixes())

    def suffixes(self) -> list[Any]:
        """(kind, width) or (high, low) in their order."""
        found: list[Any] = []
        while self.peek() in (".", "["):
            if self.take() == ".":
                found.append(_typed(self.take()))
                continue
            high = self.expression()
            low = high
            if self.peek() == ":":
                self.take()
                low = self.expression()
            self.take("]")
            found.append((high, low))
        return found

    # Expressions

    def expression(self) -> Any:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        first = self.expression()
        self.take(":")
        second = self.expression()
        return lambda machine, names: (first if condition(machine, names).number else second)(machine, names)

    def binary(self, level: int) -> Any:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _BINARY[level]:
            operator, right = self.take(), self.binary(level + 1)
            left = partial(_both, operator, left, right)
        return left

    def unary(self) -> Any:
        if self.peek() in ("-", "~", "!", "+"):
            operator, value = self.take(), self.unary()
            return lambda machine, names: _unary(operator, value(machine, names))
        value = self.primary()
        suffixes = self.suffixes()
        if not suffixes:
            return value
        return lambda machine, names: _selected(value(machine, names), suffixes, machine, names)

    def primary(self) -> Any:
        token = self.take()
        if token == "(":
            value = self.expression()
            self.take(")")
            return value
        if token == "{":
            parts = [self.expression()]
            while self.peek() == ",":
                self.take()
                parts.append(self.expression())
            self.take("}")
            return lambda machine, names: _joined([p(machine, names) for p in parts])
        if re.match(r"\d+'$", token):
            kind = self.take()
            self.take("(")
            value = self.expression()
            self.take(")")
            return lambda machine, names: cast(value(machine, names), kind.lower(), int(token[:-1]))
        if token[0].isdigit():
            constant = _literal(token)
            return lambda machine, names: constant
        if self.peek() == "(":
            self.take()
            arguments = [self.expression()]
            while self.peek() == ",":
                self.take()
                arguments.append(self.expression())
            self.take(")")
            return lambda machine, names: _call(token, [a(machine, names) for a in arguments], machine, names)
        if token in _CONSTANTS:
            return lambda machine, names: _CONSTANTS[token]

        def name(machine: Machine, names: Names) -> Value:
            if token not in names:
                raise NotRead(token)
            return names[token]

        if token == "WAVE_MODE":
            self.take(".")
            self.take("IEEE")
            return lambda machine, names: Value(1, "u", 1)
        return name


def _break(machine: Machine, names: Names) -> None:
    raise _Break


def _both(operator: str, left: Any, right: Any, machine: Machine, names: Names) -> Value:
    return _arithmetic(operator, left(machine, names), right(machine, names))


class _Target:
    def __init__(self, name: str, suffixes: list[Any]) -> None:
        self.name, self.suffixes = name, suffixes

    def get(self, machine: Machine, names: Names) -> Value:
        return _selected(names[self.name], self.suffixes, machine, names)

    def set(self, machine: Machine, names: Names, value: Value) -> None:
        low, width, kind = 0, 0, ""
        backwards = False
        for suffix in self.suffixes:
            if isinstance(suffix[0], str):
                kind, width = suffix[0], width or suffix[1]
            else:
                high, low = (int(part(machine, names).number) for part in suffix)
                backwards, low, high = high < low, min(low, high), max(low, high)
                width = high - low + 1
        if backwards:
            raise NotRead("a target backwards")
        if not self.suffixes:
            old = names.get(self.name)
            names[self.name] = value if old is None or self.name not in _REGISTERS else cast(value, "b", old.width)
            return
        bits = cast(value, kind or value.kind, width).bits
        old = names.get(self.name, Value(0, "b", 64))
        if self.name in _REGISTERS or low:
            mask = ((1 << width) - 1) << low
            names[self.name] = Value(old.bits & ~mask | bits << low, old.kind, old.width)
        else:
            whole = all(isinstance(s[0], str) for s in self.suffixes)
            mask = (1 << width) - 1
            names[self.name] = Value(bits, kind, width) if whole else Value(old.bits & ~mask | bits, "b", 64)


_REGISTERS = ("D0", "D1", "VCC", "EXEC", "D")


def _typed(word: str) -> tuple[str, int]:
    match = _TYPE.match(word)
    if match is None:
        raise NotRead(word)
    return match[1], int(match[2])


def _selected(value: Value, suffixes: list[Any], machine: Machine, names: Names) -> Value:
    for suffix in suffixes:
        if isinstance(suffix[0], str):
            kind, width = suffix
            if value.real and kind in ("f", "bf") and width != value.width:
                value = rounded(value.number, kind, width)
            else:
                value = Value(value.bits & ((1 << width) - 1), kind, width)
        else:
            high, low = (int(part(machine, names).number) for part in suffix)
            if high < low:
                bits = [value.bits >> k & 1 for k in range(high, low + 1)]
                value = Value(sum(bit << k for k, bit in enumerate(reversed(bits))), "u", low - high + 1)
            else:
                value = Value(value.bits >> low & ((1 << (high - low + 1)) - 1), "u", high - low + 1)
    return value


def cast(value: Value, kind: str, width: int) -> Value:
    """Convert `value` to another type: floats by their number, anything into or out of a float by its bits."""
    if kind in ("f", "bf"):
        return rounded(value.number, kind, width) if value.real else Value(value.bits & ((1 << width) - 1), kind, width)
    bits = value.bits if value.real else value.number
    return Value(bits & ((1 << width) - 1), kind, width)


def _joined(parts: list[Value]) -> Value:
    bits = 0
    for part in parts:
        bits = bits << part.width | part.bits
    return Value(bits, "u", sum(p.width for p in parts))


def _literal(token: str) -> Value:
    width = 32
    if "'" in token:
        size, token = token.split("'")
        width = int(size)
    elif token.endswith("LL"):
        width = 64
    kind = "u" if "U" in token else "i"
    token = token.rstrip("ULI")
    if "." in token:
        return rounded(float(token.rstrip("F")), "f", 32 if token.endswith("F") else width if width != 32 else 64)
    return Value(int(token, 0), "u" if token.startswith("0x") else kind, width)


def _truth(condition: bool) -> Value:
    return Value(int(condition), "u", 1)


def _unary(operator: str, value: Value) -> Value:
    match operator:
        case "-" if value.real:
            return Value(value.bits ^ 1 << (value.width - 1), value.kind, value.width)
        case "-":
            return Value(-value.number & ((1 << value.width) - 1), "i", value.width)
        case "~":
            return Value(~value.bits & ((1 << value.width) - 1), value.kind, value.width)
        case "!":
            return _truth(not value.number)
    return value


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}


def _arithmetic(operator: str, a: Value, b: Value) -> Value:
    if operator in _COMPARE:
        return _truth(_COMPARE[operator](a.number, b.number))
    if operator in ("<<", ">>"):
        bits = a.number << b.bits if operator == "<<" else a.number >> b.bits
        return Value(bits & ((1 << a.width) - 1), a.kind, a.width)
    width = max(a.width, b.width)
    if operator in "&|^":
        bits = {"&": a.bits & b.bits, "|": a.bits | b.bits, "^": a.bits ^ b.bits}[operator]
        return Value(bits, a.kind if a.width == width else b.kind, width)
    x, y = a.number, b.number
    if a.real or b.real:
        return rounded(_exact(operator, x, y), "f", width)
    bits = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y}[operator]()
    return Value(bits & ((1 << width) - 1), "i" if a.kind == b.kind == "i" else "u", width)


def _exact(operator: str, x: Any, y: Any) -> Any:
    """Return the result without rounding, as a Fraction if it is finite."""
    if operator == "**":
        return Fraction(x) ** int(y)
    x, y = float(x), float(y)
    if not (math.isfinite(x) and math.isfinite(y)):
        if operator == "*":
            return math.nan if 0 in (x, y) else x * y
        if operator == "/":
            return (
                math.nan
                if math.isinf(x) and math.isinf(y)
                else x / y
                if y
                else math.copysign(math.inf, x) * math.copysign(1, y)
            )
        return x + y if operator == "+" else x - y
    if operator == "/":
        if y == 0:
            return math.nan if x == 0 else math.copysign(math.inf, x) * math.copysign(1, y)
        result = Fraction(x) / Fraction(y)
        return result if result else x / y
    if operator == "*":
        result = Fraction(x) * Fraction(y)
        return result if result else x * y
    y = y if operator == "+" else -y
    result = Fraction(x) + Fraction(y)
    return result if result else x + y


def _fma(a: Value, b: Value, c: Value) -> Value:
    product = _exact("*", a.number, b.number)
    addend = c.number
    if isinstance(product, Fraction) and math.isfinite(addend):
        total: Any = product + Fraction(addend)
    else:
        total = float(product) + addend if not isinstance(product, Fraction) else addend
    return rounded(total, a.kind, a.width)


def _floats(function: Callable[[float], float]) -> Callable[[Value], Value]:
    def apply(x: Value) -> Value:
        try:
            return rounded(function(x.number), x.kind, x.width)
        except (ValueError, OverflowError):
            return rounded(math.nan, x.kind, x.width)

    return apply


def _fixed(function: Callable[[float], int]) -> Callable[[Value], Value]:
    def apply(x: Value) -> Value:
        if not math.isfinite(x.number):
            return x
        result = function(x.number)
        return rounded(float(result) if result else math.copysign(0.0, x.number), x.kind, x.width)

    return apply


def _log2(x: float) -> float:
    return -math.inf if x == 0 else math.inf if x == math.inf else math.log2(x)


_CONSTANTS = {
    "INF": rounded(math.inf, "f", 64),
    "NAN": rounded(math.nan, "f", 64),
    "PI": rounded(math.pi, "f", 64),
    "ROUND_NEAREST_EVEN": Value(0, "u", 2),
    "ROUND_TOWARD_ZERO": Value(3, "u", 2),
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "isNAN": lambda x: _truth(math.isnan(x.number)),
    "isSignalNAN": lambda x: _truth(False),
    "isEven": lambda x: _truth(x.number % 2 == 0),
    "fma": _fma,
    "trunc": _fixed(math.trunc),
    "floor": _fixed(math.floor),
    "fract": lambda x: rounded(
        x.number - math.floor(x.number) if math.isfinite(x.number) else math.nan, x.kind, x.width
    ),
    "sqrt": _floats(lambda x: math.sqrt(x) if x else x),
    "log2": _floats(_log2),
    "sin": _floats(math.sin),
    "cos": _floats(math.cos),
    "pow": lambda a, x: _floats(lambda y: math.inf if y >= 1024 else 2.0**y)(x),
    "abs": lambda x: Value(x.bits & ~(1 << (x.width - 1)), x.kind, x.width),
    "mantissa": _floats(lambda x: math.frexp(x)[0]),
    "exponent": lambda x: Value((math.frexp(x.number)[1] - 1 + {32: 127, 64: 1023}[x.width]) & 0xFFFFFFFF, "i", 32),
    "signext": lambda x: Value(Value(x.bits, "i", x.width).number & (2**64 - 1), "i", 64),
    "signext_from_bit": lambda x, n: Value(
        (Value(x.bits & ((1 << n.bits) - 1), "i", n.bits).number if 0 < n.bits < x.width else x.number if n.bits else 0)
        & ((1 << x.width) - 1),
        x.kind,
        x.width,
    ),
}
_CONVERSION = re.compile(r"(u|i|f|bf)(\d+)_to_(u|i|f|bf)(\d+)$")


def _call(name: str, arguments: list[Value], machine: Machine, names: Names) -> Value:
    if match := _CONVERSION.match(name):
        (x,) = arguments
        kind, width = match[3], int(match[4])
        number = Value(x.bits & ((1 << int(match[2])) - 1), match[1], int(match[2])).number
        if kind in ("f", "bf"):
            toward_zero = names.get("ROUND_MODE", Value(0, "u", 2)).bits == 3
            return rounded(number, kind, width, toward_zero)
        # Out of range: the nearest; NaN: 0.
        low, high = (0, 2**width - 1) if kind == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        if isinstance(number, float):
            number = 0 if math.isnan(number) else high if number > high else low if number < low else math.trunc(number)
        return Value(number & ((1 << width) - 1), kind, width)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*arguments)
    sources = {f"S{k}": a for k, a in enumerate(arguments)}
    result = machine.run(name, {**sources, "D0": Value(0, "b", 64)})["D0"]
    return Value(result.bits & ((1 << arguments[0].width) - 1), arguments[0].kind, arguments[0].width)
