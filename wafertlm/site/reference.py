"""The reference, made from the code: commands with options, files with fields, results."""

import json
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from inspect import cleandoc
from io import StringIO
from typing import Any

import click
from pydantic import BaseModel

from cosim.spec.mesh import MeshSpec
from tlm.chips.gpu import GpuBox
from tlm.chips.profile import Chip
from wafertlm.cli import COMMANDS, cli
from wafertlm.commands.examples import EXAMPLES
from wafertlm.commands.groups import group_of
from wafertlm.site.fields import EVERY_RESULT, RESULTS
from workloads.models.model import Model

_FILES: dict[str, tuple[str, tuple[type[BaseModel], ...]]] = {
    "chips.md": ("Fields of a chip", (Chip, GpuBox)),
    "models.md": ("Fields of a model", (Model,)),
    "routers.md": ("Fields of a router's specification", (MeshSpec,)),
}


def reference_pages() -> dict[str, str]:
    """All pages of the reference, in Markdown, by the names of their files."""
    pages = {"commands.md": _commands(), "results.md": _results()}
    for name, (title, tables) in _FILES.items():
        parts = [f"# {title}\n", *(text for table in tables for text in _tables(table))]
        pages[name] = "\n".join(parts)
    return pages


def command_of(name: str) -> click.Command:
    """A command of the program.

    Raises:
        click.UsageError: for a name that there is not.
    """
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def _commands() -> str:
    lines = ["# Commands\n"]
    lines += [f"- [`wafertlm {name}`](#{name}): {told}" for name, told in COMMANDS.items()]
    for name in COMMANDS:
        command = command_of(name)
        context = click.Context(command, info_name=f"wafertlm {name}")
        usage = " ".join(command.collect_usage_pieces(context))
        lines += [f"\n## {name}\n", f"`wafertlm {name} {usage}`\n", _prose(command.help)]
        lines += [f"\n```text\n{each.line}\n```" for each in EXAMPLES.get(name, ())]
        lines += ["\n| option | of | default | meaning |", "|---|---|---|---|"]
        options = [each for each in command.params if isinstance(each, click.Option)]
        lines += [_row(*_option(name, option, context)) for option in options]
        names = _names(name)
        lines += [""] if names else []
        for kind, known in names.items():
            lines.append(f"- {kind}: {', '.join(f'`{each}`' for each in known)}")
    return "\n".join(lines) + "\n"


def _option(command: str, option: click.Option, context: click.Context) -> tuple[str, ...]:
    flags = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    takes = "" if option.is_flag else f" `{option.make_metavar(context)}`"
    default = option.get_default(context)
    is_told = option.show_default and default not in (None, (), False)
    told = f"`{default}`" if is_told else ""
    return (flags + takes, group_of(command, option.name or ""), told, _prose(option.help))


def _names(command: str) -> Mapping[str, list[str]]:
    """What the options of a command may name."""
    printed = StringIO()
    with redirect_stdout(printed):
        command_of(command).main(["--list", "--json"], prog_name=command, standalone_mode=False)
    names: dict[str, list[str]] = json.loads(printed.getvalue())
    return names


def _results() -> str:
    lines = [
        "# Fields of results\n",
        "`--json` prints one object. A result that is stored with `--out` is the same without its",
        "costs. Names with a dot lie in a table, names with `[]` in each record of a list.\n",
        *_field_table("In every result", EVERY_RESULT),
    ]
    for name, fields in RESULTS.items():
        lines += _field_table(f"`wafertlm {name}`", fields)
    return "\n".join(lines) + "\n"


def _field_table(title: str, fields: Mapping[str, str]) -> list[str]:
    rows = [_row(f"`{name}`", told) for name, told in fields.items()]
    return [f"\n## {title}\n", "| field | meaning |", "|---|---|", *rows]


def _tables(table: type[BaseModel]) -> Iterator[str]:
    """A table of a file, and those that lie in it."""
    schema = table.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            yield f"\n## {part['title']}\n\n{_prose(part.get('description'))}\n"
            yield "| field | what it takes | if left out |\n|---|---|---|"
            required = part.get("required", ())
            for name, field in part["properties"].items():
                default = "has to be there" if name in required else _value(field.get("default"))
                yield _row(f"`{name}`", takes(field), default)


def takes(field: Mapping[str, Any]) -> str:
    """What a field takes, in words.

    Args:
        field: Of a JSON schema.
    """
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.strip('_').lower()})"
    if choices := field.get("anyOf") or field.get("oneOf"):
        told = [takes(each) for each in choices if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(told))
    if "const" in field or "enum" in field:
        return ", ".join(_value(each) for each in field.get("enum", [field.get("const")]))
    kind = field.get("type")
    if kind == "array":
        items = field.get("items", {})
        return f"list of {takes(items)}" if items else "list"
    if kind == "object":
        inside = field.get("additionalProperties")
        return f"table of {takes(inside)}" if isinstance(inside, dict) else "table"
    plain = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
    return plain.get(str(kind), "text") + _bounds(field)


def _bounds(field: Mapping[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}
    told = [f"{sign} {field[name]:g}" for name, sign in signs.items() if name in field]
    return f", {' and '.join(told)}" if told else ""


def _value(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def _prose(text: str | None) -> str:
    """A docstring as Markdown: its code in single marks, without what is for programmers."""
    return cleandoc(text or "").split("\nRaises:")[0].replace("``", "`").strip()


def _row(*cells: str) -> str:
    told = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(told)} |"
