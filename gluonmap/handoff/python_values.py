"""Values that a map stores as Python text, "py:gl.float16", as the objects that a kernel takes.

The text is parsed and never executed: a map may come from anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError

PREFIX = "py:"


def python_value(value: Value, names: Mapping[str, Any]) -> Any:
    """Return the value as a kernel takes it.

    A text that begins with "py:" may contain names, attributes, lists, tuples and literals, and call layouts and float.
    `names`: names that it may use besides triton, tl, gl and Gluon's layouts: the globals of the kernel's module.

    Raises:
        UsageError: the text contains anything else, or an unknown name.
    """
    if not isinstance(value, str) or not value.startswith(PREFIX):
        return value
    try:
        return _evaluated(ast.parse(value[len(PREFIX) :].strip(), mode="eval").body, {**_known(), **names})
    except (ValueError, SyntaxError, LookupError, AttributeError, TypeError) as error:
        raise UsageError(
            f"the map's value {value!r} cannot be made here: {type(error).__name__}: {error}. "
            "@gluonmap.autotune makes what the kernel's own module names."
        ) from error


def _known() -> dict[str, Any]:
    import triton
    from triton import language as tl
    from triton.experimental.gluon import language as gl

    layouts = {name: getattr(gl, name) for name in dir(gl) if name.endswith("Layout")}
    return {"triton": triton, "tl": tl, "gl": gl, "float": float, **layouts}


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Attribute(value=owner, attr=name):
            return getattr(_evaluated(owner, names), name)
        case ast.List(elts=parts):
            return [_evaluated(part, names) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_evaluated(part, names) for part in parts)
        case ast.Call(func=function, args=args, keywords=keywords) if all(k.arg for k in keywords):
            make = _evaluated(function, names)
            # A map may come from anywhere, and any function can be reached through modules, so only these are called.
            if make is not float and not (isinstance(make, type) and make.__name__.endswith("Layout")):
                raise ValueError(f"{ast.unparse(function)} is no layout")
            values = {str(k.arg): _evaluated(k.value, names) for k in keywords}
            return make(*(_evaluated(a, names) for a in args), **values)
    return ast.literal_eval(node)
