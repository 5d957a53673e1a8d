"""Write docs/reference/: commands from click, schemas from the data that is stored, exit codes from the code.

    python docs/reference.py

The pages are committed, so that a reader finds them next to the code and a review shows every change of them.
tests/docs/test_docs.py fails if a page differs from the output of this script.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from gluonmap.cli.command_group import cli
from gluonmap.diff import comparison
from gluonmap.model import codec, errors, exitcode, race_record, relations, space_map
from gluonmap.model.outcomes import Outcome

FOLDER = Path(__file__).resolve().parent / "reference"
WRITTEN = "<!-- Written by docs/reference.py: change the code, then run it. -->"
FIELDS_OF_DIFF = {
    "A": {"type": "string", "description": "The first file, as it was named on the command line."},
    "B": {"type": "string", "description": "The second file, as it was named on the command line."},
    "changed": {
        "type": "boolean",
        "description": "True if the maps differ in any statement about the kernel.",
    },
}
DOCUMENTS: tuple[tuple[str, type[msgspec.Struct], str, str, dict[str, Any]], ...] = (
    (
        "map",
        space_map.SpaceMap,
        space_map.MAP_SCHEMA,
        "`reports/….json`, `gluonmap probe --json`, `gluonmap report --json`",
        {},
    ),
    ("race", race_record.RaceRecord, race_record.RACE_SCHEMA, "`….race.json`, `gluonmap race --json`", {}),
    ("split", race_record.Split, race_record.SPLIT_SCHEMA, "`….split.json`, `gluonmap race --regimes … --json`", {}),
    ("diff", comparison.Difference, comparison.DIFF_SCHEMA, "`gluonmap diff --json`", FIELDS_OF_DIFF),
)
"""File name, type, value of `schema`, commands and files that write it, and fields in addition to the type's."""
UNIONS = {
    "relation": frozenset(kind.__name__ for kind in get_args(relations.Relation)),
    "term": frozenset(kind.__name__ for kind in get_args(relations.Term)),
}
MARK = re.compile(r"[*<\[\]\\]|(?<!\w)_+|_+(?!\w)")
VALUE = {"text", "number", "whole number", "true or false", "null"}


def pages() -> dict[str, str]:
    """Return the text of every file of docs/reference/ by its name."""
    schemas = {name: schema_of(kind, value, more) for name, kind, value, _, more in DOCUMENTS}
    files = {f"{name}.schema.json": codec.dumps(schema).decode() for name, schema in schemas.items()}
    fields = {f"schema-{name}.md": fields_page(kind, schemas[name]) for name, kind, *_ in DOCUMENTS}
    return {"cli.md": commands_page(), "exit-codes.md": codes_page(), "schemas.md": schemas_page(), **fields, **files}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell or " " for cell in line) + " |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return text for a cell of a table. All marks of Markdown except backticks are escaped."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if n % 2 else MARK.sub(escaped, part) for n, part in enumerate(parts)).replace("|", r"\|")


def escaped(mark: re.Match[str]) -> str:
    """Return the match with a backslash before each character."""
    return "".join(f"\\{character}" for character in mark[0])


# Commands


def commands_page() -> str:
    """Return the page of all commands with their options."""
    parts = [
        WRITTEN,
        "# Commands",
        "`gluonmap COMMAND --help` prints the same. Every option can also be given as an environment variable: "
        "`GLUONMAP_PROBE_DEPTH=singles` is `gluonmap probe --depth singles`.",
    ]
    for name, command in commands():
        context = click.Context(command, info_name=f"gluonmap {name}")
        usage = " ".join([f"gluonmap {name}", *command.collect_usage_pieces(context)])
        parts += [f"## gluonmap {name}", f"`{usage}`", *paragraphs(command.help or "")]
        options = [item for item in command.params if isinstance(item, click.Option)]
        if options:
            parts.append(table(("option", "takes", "meaning"), [option_row(item) for item in options]))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def commands() -> list[tuple[str, click.Command]]:
    """Return names and commands in the order of `gluonmap --help`."""
    return [(name, cli.commands[name]) for name in cli.list_commands(click.Context(cli))]


def paragraphs(text: str) -> Iterator[str]:
    r"""Yield the paragraphs of a help text; a paragraph after \b is an example."""
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if part.startswith("\b"):
            yield "```sh\n" + part.removeprefix("\b").strip() + "\n```"
        else:
            yield cell(part)


def option_row(option: click.Option) -> tuple[str, str, str]:
    """Return the names of an option, the kind of its value, and its meaning."""
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    meaning = (option.help or "").rstrip()
    if option.required:
        meaning = f"{meaning} Required."
    if option.multiple:
        meaning = f"{meaning} May be repeated."
    if option.show_default:
        meaning = f"{meaning} Default: `{option.default if not option.is_flag else option.opts[0].lstrip('-')}`."
    return names, takes(option), cell(meaning)


def takes(option: click.Option) -> str:
    """Return the kind of value that an option takes; "" for a flag."""
    if option.is_flag:
        return ""
    if option.metavar:
        return f"`{option.metavar}`"
    if isinstance(option.type, click.Choice):
        return ", ".join(f"`{choice}`" for choice in option.type.choices)
    words = {
        "integer": "a whole number",
        "integer range": "a whole number",
        "float": "a number",
        "float range": "a number",
    }
    return words.get(option.type.name, f"a {option.type.name}")


# Exit codes


def codes_page() -> str:
    """Return the page of exit codes: of the tool, of each command, and of a candidate's process."""
    kinds = [
        (f"`{kind.__name__}`", str(kind.exit_code), cell(first_line(kind)))
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, errors.GluonmapError)
    ]
    of_commands = [(f"`gluonmap {name}`", cell(text)) for name, command in commands() if (text := codes(command))]
    statuses = sorted(
        (status, str(outcome), cell(meaning))
        for outcome in Outcome
        for status, meaning in outcome.info.statuses.items()
    )
    counted = [
        (
            f"`{outcome}`",
            cell(outcome.info.word),
            str(outcome.info.feasibility),
            "yes" if outcome.info.evidence else "no",
        )
        for outcome in Outcome
    ]
    signals = ", ".join(sorted(signal.name for signal in exitcode.CRASH_SIGNALS))
    return (
        "\n\n".join(
            part.rstrip("\n")
            for part in [
                WRITTEN,
                "# Exit codes",
                "## Of the tool",
                "Codes and outcome names are only ever added.",
                table(
                    ("code", "means"),
                    [
                        ("0", "done, nothing found"),
                        ("1", "the command found what it looks for"),
                        (str(errors.UsageError.exit_code), "usage error; the message says what to do"),
                        (str(errors.GluonmapError.exit_code), "a fault of the tool or the machine, or no answer"),
                        ("130", "interrupted; the answers so far are kept"),
                    ],
                ),
                "Exit codes of single commands:",
                table(("command", "exit codes"), of_commands),
                "Errors in Python (`gluonmap.model.errors`), and the exit code of a command that ends with one:",
                table(("error", "code", "means"), kinds),
                "## Of a candidate",
                "The process of one candidate ends with one of these, and so does `gluonmap repeat`. "
                + cell(" ".join((exitcode.__doc__ or "").split("\n\n", 1)[1].split())),
                table(("status", "outcome", "means"), [(str(status), *rest) for status, *rest in statuses]),
                "A configuration counts by its outcome; constraints are checked against outcomes that are evidence:",
                table(("outcome", "means", "counts as", "evidence"), counted),
                f"A signal that a process causes itself is CRASHED, with the signal's name: {signals}. A process that "
                "is killed at its deadline is HUNG. Any other end is no verdict: the candidate is asked once more, "
                "then recorded as `unknown`.",
            ]
        )
        + "\n"
    )


def codes(command: click.Command) -> str:
    """Return the sentence of a help text that names its exit codes; "" if there is none."""
    text = " ".join((command.help or "").split("\b")[0].split())
    found = re.search(r"(?:Exit codes:|The exit status is) (.*?)\.(?: |$)", text)
    return found[1] if found else ""


def first_line(kind: type) -> str:
    """Return the first line of a class's docstring; without one, name its base class."""
    own = vars(kind).get("__doc__") or f"A kind of `{kind.__bases__[0].__name__}`."
    return str(own).strip().split("\n")[0]


# Schemas


def schema_of(kind: type[msgspec.Struct], value: str, more: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of one document, with the text below each field in the code as its description."""
    schema = msgspec.json.schema(kind)
    texts = descriptions(kind)
    for name, part in schema["$defs"].items():
        part.pop("title", None)
        part["description"] = " ".join(part["description"].split()) if part.get("description") else ""
        for field, form in part.get("properties", {}).items():
            if text := texts.get((name, field)):
                form["description"] = text
    root = schema["$defs"][kind.__name__]
    root["properties"] = {**more, **root["properties"]}
    root["properties"]["schema"] = {"const": value}
    root["required"] = [*more, *root.get("required", [])]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": value, **schema}


def descriptions(kind: type[msgspec.Struct]) -> dict[tuple[str, str], str]:
    """Return (class, stored field name) -> text below the field, for every class in a document."""
    return {
        (part.__name__, name): text
        for part in structs(kind)
        for name, text in attribute_texts(class_in_source(part).body).items()
    }


def class_in_source(kind: type) -> ast.ClassDef:
    """Return the syntax tree of a class."""
    tree = ast.parse(inspect.getsource(importlib.import_module(kind.__module__)))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)


def attribute_texts(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Return name -> text below its assignment, for the statements of a class."""
    found = {}
    for place, after in itertools.pairwise(body):
        if isinstance(place, ast.AnnAssign | ast.Assign) and isinstance(after, ast.Expr):
            found[stored_name(place)] = " ".join(str(ast.literal_eval(after.value)).split())
    return found


def stored_name(place: ast.AnnAssign | ast.Assign) -> str:
    """Return the assigned name; for a field with `msgspec.field(name=…)` that name."""
    if isinstance(place.value, ast.Call):
        for keyword in place.value.keywords:
            if keyword.arg == "name":
                return str(ast.literal_eval(keyword.value))
    return ast.unparse(place.targets[0] if isinstance(place, ast.Assign) else place.target)


def structs(kind: type[msgspec.Struct]) -> set[type]:
    """Return all classes that a document of this type can hold."""
    seen: set[type] = set()
    todo: list[Any] = [msgspec.inspect.type_info(kind)]
    while todo:
        info = todo.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in seen:
                continue
            seen.add(info.cls)
            todo += [field.type for field in info.fields]
        else:
            for name in getattr(info, "__struct_fields__", ()):
                part = getattr(info, name)
                todo += part if isinstance(part, tuple) else [part]
    return seen


def schemas_page() -> str:
    """Return the page that lists the documents."""
    rows = [
        (f"`{value}`", f"[{name}.schema.json]({name}.schema.json)", f"[schema-{name}.md](schema-{name}.md)", where)
        for name, _, value, where, _ in DOCUMENTS
    ]
    return "\n\n".join(
        [
            WRITTEN,
            "# Schemas",
            "These documents are stored or printed as JSON. Their types are in the code. A schema only ever gains "
            "fields. The pages [map.md](../map.md), [race.md](../race.md) and [diff.md](../diff.md) explain them.",
            table(("`schema`", "JSON Schema", "fields", "written as"), rows),
        ]
    )


def fields_page(kind: type[msgspec.Struct], schema: dict[str, Any]) -> str:
    """Return the page with the fields of one document, type by type."""
    known = schema["$defs"]
    parts = [
        WRITTEN,
        f"# {schema['title']}",
        "A field with ? may be absent. A *value* is a number, text, true, false or null. "
        "The document is a " + link(kind.__name__) + ".",
    ]
    for word, names in UNIONS.items():
        if names <= known.keys():
            parts.append(f"A *{word}* is one of {', '.join(link(name) for name in sorted(names))}.")
    for name in [kind.__name__, *sorted(known.keys() - {kind.__name__})]:
        parts += [f"## {name}", *described(known[name])]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def described(part: dict[str, Any]) -> Iterator[str]:
    """Yield the description and the fields of one type."""
    if part["description"]:
        yield cell(part["description"])
    if "enum" in part:
        yield ", ".join(f"`{value}`" for value in part["enum"])
        return
    required = set(part.get("required", ()))
    rows = [
        (
            f"`{name}`" + ("" if name in required else " ?"),
            shape(form),
            cell(form.get("description", "")),
        )
        for name, form in part.get("properties", {}).items()
    ]
    yield table(("field", "is", "meaning"), rows)


def shape(form: dict[str, Any]) -> str:
    """Return a type in words."""
    if "$ref" in form:
        return link(form["$ref"].rsplit("/", 1)[1])
    if "const" in form:
        return f"`{form['const']}`"
    if "enum" in form:
        return ", ".join(f"`{value}`" for value in form["enum"])
    if "anyOf" in form:
        names = frozenset(part["$ref"].rsplit("/", 1)[1] for part in form["anyOf"] if "$ref" in part)
        kinds = [shape(part) for part in form["anyOf"] if "$ref" not in part]
        word = next((word for word, union in UNIONS.items() if names == union), "")
        kinds = [f"*{word}*", *kinds] if word else [*map(link, sorted(names)), *kinds]
        return "*value*" if set(kinds) == VALUE else " or ".join(kinds)
    match form.get("type"):
        case "array" if "prefixItems" in form:
            return f"[{', '.join(shape(part) for part in form['prefixItems'])}]"
        case "array":
            return f"list of {shape(form['items'])}" if form.get("items") else "list"
        case "object":
            more = form.get("additionalProperties")
            return f"name → {shape(more)}" if isinstance(more, dict) else "object"
        case kind:
            words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
            return words.get(str(kind), str(kind or "anything"))


def link(name: str) -> str:
    """Return a link to a type on the same page."""
    return f"[{name}](#{name.lower()})"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
