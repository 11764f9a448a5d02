"""Tables of variables and outputs in each module's README.md, made of its .tf files.

    docs.py           says where a table is not what the files say, and exits 1
    docs.py --write   writes the tables
"""

import re
import sys
from pathlib import Path

import hcl2

BEGIN = "<!-- tables: made of the .tf files by infra/tests/docs.py --write -->"
END = "<!-- /tables -->"


def blocks(directory, kind):
    for file in sorted(directory.glob("*.tf")):
        with file.open() as text:
            for block in hcl2.load(text).get(kind, []):
                yield from block.items()


def plain(value):
    """An attribute without the parser's wrapping of lists and interpolations."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        value = re.sub(r"^\$\{(.*)\}$", r"\1", value, flags=re.S)
    return value


def kind_of(value):
    text = str(plain(value))
    # An object's fields are read better in variables.tf than in a cell.
    return "object" if text.startswith("object(") else "map of map of object" if "object(" in text else text


def default_of(variable):
    if "default" not in variable:
        return "required"
    value = variable["default"]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], (list, dict, str, int, bool, type(None))):
        value = value[0]
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{value}`".replace("'", '"')


def cell(text):
    return str(plain(text)).replace('\\"', '"').replace("|", "\\|").replace("\n", " ")


def table(directory):
    lines = [BEGIN, "", "| variable | is | default | |", "|---|---|---|---|"]
    for name, variable in sorted(blocks(directory, "variable")):
        lines.append(f"| `{name}` | {kind_of(variable['type'])} | {default_of(variable)} | {cell(variable['description'])} |")
    lines += ["", "| output | |", "|---|---|"]
    for name, output in sorted(blocks(directory, "output")):
        lines.append(f"| `{name}` | {cell(output['description'])} |")
    return "\n".join([*lines, "", END])


def main():
    root = Path(__file__).resolve().parent.parent
    modules = [root, *sorted((root / "modules").iterdir()), *sorted((root / "examples").iterdir())]
    wrong = 0
    for module in modules:
        readme = module / "README.md"
        text = readme.read_text()
        if BEGIN not in text or END not in text:
            sys.exit(f"{readme.relative_to(root.parent)} has no place for its tables\nhint: put these two lines into it:\n{BEGIN}\n{END}")
        head, rest = text.split(BEGIN)
        made = head + table(module) + rest.split(END)[1]
        if "--write" in sys.argv:
            readme.write_text(made)
        elif made != text:
            print(f"{readme.relative_to(root.parent)} does not say what the .tf files say", file=sys.stderr)
            wrong += 1
    if wrong:
        sys.exit("hint: make infra-docs")
    print(f"{len(modules)} modules and examples, each with its tables")


main()
