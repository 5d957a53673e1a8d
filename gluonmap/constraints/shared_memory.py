"""Shared memory as an exact formula: the maximum of a few sums of products of knobs, fitted to reported sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gluonmap.constraints.semantics import Unit, term_words, unit_of, view_of
from gluonmap.model import targets
from gluonmap.model.candidate import Value
from gluonmap.model.relations import Compare, KnobTerm, Max, Number, Op, Product, Quotient, RoundUp, Sum, Term, View

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

FEWEST_DATA = 12
ENOUGH_DATA = 24
"""Data from which sums of four terms and rounded bytes are tried too."""
COEFFICIENTS = (0.5, 0.25, 0.125, 0.0625, 0.03125, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 384, 512)
CONSTANTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
MULTIPLES = (1, 16, 128, 1024)
"""Reported bytes may be rounded up to one of these."""
MOST_PIECES = 4
MOST_MONOMIALS = 4_000
MOST_LARGE_TERMS = 380
MOST_SMALL_TERMS = 260
SHARE_OF_A_LARGE_TERM = 0.2
"""Share of the bytes of some datum that the largest of at most four terms has at least."""
FEWEST_TRIALS = 6
MOST_TRIALS = 14
"""Samples of data on which one piece is searched for."""
MOST_COMBINATIONS = 2_000

OTHER_LIMITS = (49_152, 101_376, 102_400, 166_912, 167_936)
"""Bytes of shared memory of GPUs that are no targets: sm_75, sm_89, sm_120, sm_80, sm_80 in all."""


class Formula(msgspec.Struct, frozen=True):
    """The bytes of shared memory of a configuration. The formula meets every datum exactly."""

    term: Term
    data: int
    """Number of configurations that it was fitted to."""

    def words(self) -> str:
        """Return the formula as a person would write it."""
        return term_words(self.term)


def budget_relation(formula: Formula, limit: int) -> Compare:
    """Return the relation that shared memory stays within `limit` bytes."""
    return Compare(formula.term, Op.AT_MOST, Number(limit))


def likely_limit(passing: Iterable[int], failing: Iterable[int]) -> int | None:
    """Return the limit between passing and failing sizes: that of a known GPU if one fits, else the largest passing.

    None: the sizes do not separate.
    """
    low, high = max(passing, default=0), min(failing, default=None)
    if high is None or high <= low:
        return None
    limits = sorted({*OTHER_LIMITS, *(target.shared_bytes for target in targets.TARGETS)})
    return next((limit for limit in limits if low <= limit < high), low)


def fit_bytes(domains: Mapping[str, Sequence[Value]], columns: Mapping[str, Any], shared: Any) -> Formula | None:
    """Return the formula for the bytes `shared` of the configurations in `columns` (one array of values per knob).

    None: no maximum of up to four sums of up to four products meets all of them exactly.
    """
    import numpy as np

    needed = np.asarray(shared, float)
    if len(needed) < FEWEST_DATA or (needed < 0).any():
        return None
    if (needed == needed[0]).all():
        return Formula(Number(int(needed[0])), len(needed))
    factors = list(_factors(domains, columns))
    for multiple in MULTIPLES:
        if (needed % multiple).any() or (multiple > 1 and len(needed) < ENOUGH_DATA):
            continue
        pieces = _Fit(factors, needed, multiple).formula()
        if pieces is not None:
            inner = pieces[0] if len(pieces) == 1 else Max(tuple(pieces))
            return Formula(RoundUp(inner, multiple) if multiple > 1 else inner, len(needed))
    return None


def _factors(domains: Mapping[str, Sequence[Value]], columns: Mapping[str, Any]) -> Iterator[tuple[Term, Any]]:
    """Yield the factors of products, with their columns: knobs as numbers, as element sizes, and plus or minus one."""
    import numpy as np

    for name, domain in domains.items():
        if len(domain) < 2:
            continue
        view = View.BYTES if any(isinstance(value, str) for value in domain) else View.PLAIN
        numbers = [int(value) if isinstance(value, bool) else view_of(value, view) for value in domain]
        if any(number is None or number < 0 for number in numbers) or len(set(numbers)) < 2:
            continue
        table = {value: float(number) for value, number in zip(domain, numbers, strict=True) if number is not None}
        column = np.array([table[value] for value in columns[name].tolist()])
        yield KnobTerm(name, view), column
        if unit_of(name, domain) is Unit.STAGES:
            if min(table.values()) >= 1:
                yield Sum((KnobTerm(name), Number(-1))), column - 1
            yield Sum((KnobTerm(name), Number(1))), column + 1
        if _may_divide(table.values()) and unit_of(name, domain) is Unit.COUNT:
            yield Quotient(Number(1), KnobTerm(name)), 1 / column


def _may_divide(numbers: Iterable[float]) -> bool:
    return all(number >= 1 and math.log2(number).is_integer() for number in numbers)


class _Fit:
    """The search for the pieces of a formula.

    No term of a piece may exceed the bytes of any datum, so few terms are possible. A piece must meet a few randomly
    drawn data at once. Random weights turn the bytes of these data, and the values of each term, into one number each.
    Two, three or four terms that add up to the bytes are then found by looking up a number.
    """

    def __init__(self, factors: list[tuple[Term, Any]], needed: Numbers, multiple: int) -> None:
        import numpy as np

        self._np = np
        self._random = np.random.default_rng(len(needed))
        self.needed = needed
        self.multiple = multiple
        large: list[tuple[float, int, Term, Numbers]] = []
        small: list[tuple[float, int, Term, Numbers]] = []
        for number, (parts, product) in enumerate(self._monomials(factors)):
            for coefficient in COEFFICIENTS if parts else CONSTANTS:
                value = coefficient * product
                if (value <= needed + 0.5).all() and value.any() and (value % 1 == 0).all():
                    whole_power = math.log2(coefficient).is_integer()
                    bits = 0.7 * len(parts) + (0.3 if whole_power else 2.0) + 0.1 * abs(math.log2(coefficient))
                    bits += 1.5 if coefficient < 1 else 0
                    bits += sum(1.0 for part in parts if not isinstance(part, KnobTerm))
                    item = (bits, number, _scaled(coefficient, parts), value)
                    if (value / np.maximum(needed, 1)).max() >= SHARE_OF_A_LARGE_TERM:
                        large.append(item)
                    elif whole_power and len(parts) <= 3:
                        small.append(item)
        large.sort(key=lambda item: item[:2])
        small.sort(key=lambda item: item[:2])
        found = sorted([*large[:MOST_LARGE_TERMS], *small[:MOST_SMALL_TERMS]], key=lambda item: item[:2])
        self.terms = [item[2] for item in found]
        self.values = np.stack([item[3] for item in found]) if found else np.zeros((0, len(needed)))

    def _monomials(self, factors: list[tuple[Term, Any]]) -> list[tuple[tuple[Term, ...], Numbers]]:
        np = self._np
        found: list[tuple[tuple[Term, ...], Numbers]] = []
        seen: set[bytes] = set()
        for count in range(5):
            for chosen in itertools.combinations(factors, count):
                knobs = [_knob(term) for term, _ in chosen]
                if len(set(knobs)) < count or (all(isinstance(term, Quotient) for term, _ in chosen) and count):
                    continue
                product = np.ones(len(self.needed))
                for _, column in chosen:
                    product = product * column
                key = product.tobytes()
                if key not in seen and (min(COEFFICIENTS) * product <= self.needed + 0.5).all():
                    seen.add(key)
                    found.append((tuple(term for term, _ in chosen), product))
        return found[:MOST_MONOMIALS]

    def formula(self) -> list[Term] | None:
        """Return sums whose maximum is the bytes of every datum, without needless ones; None: none were found."""
        pieces = self._pieces()
        if pieces is None:
            return None
        for piece in sorted(pieces, key=lambda chosen: -len(chosen)):
            others = [other for other in pieces if other is not piece]
            if others and self._meets(self._np.max([self.values[list(other)].sum(0) for other in others], 0)).all():
                pieces = others
        return [self.terms[c[0]] if len(c) == 1 else Sum(tuple(self.terms[i] for i in c)) for c in pieces]

    def _pieces(self) -> list[tuple[int, ...]] | None:
        """Return pieces, the one that explains most data first; None: some data stay unexplained."""
        np = self._np
        left = np.ones(len(self.needed), bool)
        found: list[tuple[int, ...]] = []
        while left.any():
            if len(found) == MOST_PIECES:
                return None
            best = self._best(left)
            if best is None or (not found and best[1].sum() < 0.2 * len(left)):
                return None
            chosen, exact = best
            found.append(chosen)
            left &= ~exact
        return found

    def _meets(self, values: Numbers) -> Mask:
        np = self._np
        rounded = np.ceil((values - 1e-6) / self.multiple) * self.multiple
        found: Mask = np.abs(rounded - self.needed) < 0.5
        return found

    def _best(self, left: Mask) -> tuple[tuple[int, ...], Mask] | None:
        """Return the sum that meets most of the remaining data; every term must explain two of them."""
        best: tuple[float, tuple[int, ...], Mask] | None = None
        for trial in range(MOST_TRIALS):
            if best is not None and trial >= FEWEST_TRIALS and best[0] > 0.3 * left.sum():
                break
            for chosen in self._adding_up(
                left, 3 - trial % 2, deep=best is None and trial >= FEWEST_TRIALS and len(left) >= ENOUGH_DATA
            ):
                values = self.values[chosen].sum(1)
                fits = (values <= self.needed + 0.5).all(1)
                if not fits.any():
                    continue
                chosen, exact = chosen[fits], self._meets(values[fits])
                scores = (exact & left).sum(1) - 2.0 * chosen.shape[1]
                place = int(scores.argmax())
                if scores[place] >= 0 and (best is None or scores[place] > best[0]):
                    best = float(scores[place]), tuple(int(i) for i in chosen[place]), exact[place]
        return None if best is None else (best[1], best[2])

    def _adding_up(self, left: Mask, data: int, *, deep: bool) -> Iterator[Any]:
        """Yield terms (one combination a row) that add up to the bytes of some data; four terms only if `deep`."""
        np = self._np
        places = self._random.choice(np.flatnonzero(left), min(data, int(left.sum())), replace=False)
        weights = self._random.uniform(0.5, 1.5, len(places))
        sums = self.values[:, places] @ weights
        total = float(self.needed[places] @ weights)
        order = np.argsort(sums)
        ordered = sums[order]
        yield order[self._equal(ordered, np.array([total]))[1]][:, None]
        rest, match = self._equal(ordered, total - sums)
        yield self._distinct(np.stack([rest, order[match]], 1))
        first, second = np.triu_indices(len(sums), 1)
        pairs = sums[first] + sums[second]
        keep = pairs < total
        first, second, pairs = first[keep], second[keep], pairs[keep]
        rest, match = self._equal(ordered, total - pairs)
        yield self._distinct(np.stack([first[rest], second[rest], order[match]], 1))
        if deep and len(pairs):
            by_sum = np.argsort(pairs)
            rest, match = self._equal(pairs[by_sum], total - pairs)
            other = by_sum[match]
            yield self._distinct(np.stack([first[rest], second[rest], first[other], second[other]], 1))

    def _equal(self, ordered: Numbers, wanted: Numbers) -> tuple[Any, Any]:
        """Return places of `wanted`, and for each a place in `ordered` that has the same number."""
        np = self._np
        low = np.searchsorted(ordered, wanted - 1e-6)
        high = np.searchsorted(ordered, wanted + 1e-6)
        many = np.minimum(high - low, 12)
        rest = np.repeat(np.arange(len(wanted)), many)
        within = np.arange(len(rest)) - np.repeat(np.cumsum(many) - many, many)
        return rest, np.repeat(low, many) + within

    def _distinct(self, chosen: Any) -> Any:
        """Return each combination once, without repeated terms, and only the shortest ones."""
        np = self._np
        if len(chosen) > 20 * MOST_COMBINATIONS:
            chosen = chosen[np.argpartition(chosen.sum(1), 20 * MOST_COMBINATIONS)[: 20 * MOST_COMBINATIONS]]
        chosen = np.sort(chosen, 1)
        chosen = chosen[(np.diff(chosen, axis=1) > 0).all(1)]
        codes = np.zeros(len(chosen), np.int64)
        for column in chosen.T:
            codes = codes * len(self.terms) + column
        chosen = chosen[np.unique(codes, return_index=True)[1]]
        return chosen[np.argsort(chosen.sum(1), kind="stable")[:MOST_COMBINATIONS]]


def _knob(term: Term) -> str:
    match term:
        case KnobTerm(name) | Sum((KnobTerm(name), _)) | Quotient(_, KnobTerm(name)):
            return name
    raise TypeError(f"{term!r} is no factor")


def _scaled(coefficient: float, parts: tuple[Term, ...]) -> Term:
    above = tuple(part for part in parts if not isinstance(part, Quotient))
    below = tuple(part.divisor for part in parts if isinstance(part, Quotient))
    if coefficient != 1 or not above:
        above = (Number(coefficient), *above)
    top = above[0] if len(above) == 1 else Product(above)
    return Quotient(top, below[0] if len(below) == 1 else Product(below)) if below else top
