"""Imports point one way: a module may import only from layers below its own."""

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "grasp"

# From the bottom up. Modules of one layer do not import each other, except inside the same folder.
LAYERS: list[set[str]] = [
    {"cores", "errors", "networks", "figures", "statistics"},
    {"files", "watchdog", "images"},
    {"configurations"},
    {"runs", "curves"},
    {"sweeps"},
    {"model", "normaliser", "randomness"},
    {"affordances"},
    {"planners"},
    {"replay"},
    {"losses", "options"},
    {"agents"},
    {"environments"},
    {"evaluation", "log", "results", "claims", "checkpoints", "schedule"},
    {"training", "progress", "pretraining", "report", "videos"},
    {"turns"},
    {"session", "command_line", "experiments", "cluster"},
    {"releases"},
    {"campaigns", "checking", "switching", "lens"},
    {"reproduction"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def room(path: Path) -> str:
    """The top-level module or folder that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The rooms of grasp that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("grasp."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {n.name.split(".")[1] for n in node.names if n.name.startswith("grasp.")}
    return found


def violations(files: list[Path]) -> list[str]:
    problems = []
    for path in files:
        here = room(path)
        if here == "__init__":  # the public face names everything
            continue
        if here not in LEVEL:
            problems.append(
                f"{path.name}: {here} has no layer; add it to LAYERS in tools/check_layers.py"
            )
            continue
        problems += [
            f"{path.relative_to(SOURCE)} imports {there}, which is not below {here}"
            for there in sorted(imports(path))
            if there != here and LEVEL.get(there, 99) >= LEVEL[here]
        ]
    return problems


if __name__ == "__main__":
    found = violations(sorted(SOURCE.rglob("*.py")))
    print("\n".join(found) or "layers: imports point one way")
    sys.exit(1 if found else 0)
