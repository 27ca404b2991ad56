# SPDX-License-Identifier: Apache-2.0
"""What of a saved flow runs in the Langflow process whatever the sandbox backend is, and what its sources import.

A flow holds the source of each of its nodes, which Langflow runs as it is saved. It is read here and never run; lfx is not
needed. Where lfx is installed, its own index of components says which sources are stock.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import pathlib
import sys
from dataclasses import dataclass

# Types, class names and display names of nodes that execute code, by lfx 1.13's CODE_EXECUTION_COMPONENT_TYPES.
INTERPRETERS = {"PythonREPLComponent": "Python Interpreter", "Python Interpreter": "Python Interpreter",
                "PythonREPLToolComponent": "Python REPL", "PythonREPLTool": "Python REPL", "Python REPL": "Python REPL"}
IN_PROCESS = {
    "PythonFunction": "runs its function_code", "PythonFunctionComponent": "runs its function_code", "Python Function": "runs its function_code",
    "LambdaFilterComponent": "runs a lambda that a model wrote", "Smart Transform": "runs a lambda that a model wrote",
    "PythonCodeStructuredTool": "runs its tool_code", "Python Code Structured": "runs its tool_code",
    "CodeActAgentSmolagents": "runs code that a model wrote", "CodeAct Agent (Smolagents)": "runs code that a model wrote",
    "Cuga": "runs code that a model wrote", "OpenDsStarAgent": "runs code that a model wrote", "OpenDsStar Agent": "runs code that a model wrote",
}
CSV_AGENTS = {"CSVAgent", "CSVAgentComponent", "CSV Agent"}
OTHER_FLOWS = {"RunFlow", "Run Flow", "SubFlow", "Sub Flow", "FlowTool", "Flow as Tool"}
SANDBOX_CALL = "run_code_in_sandbox"
HOST_MODULES = {"lfx", "langflow", "caisson_langflow"}  # which every image for flows has
EXTENSIONS = ("langflow.extensions", "lfx.bundles")
DEPTH = 32  # of groups in groups


class NotAFlow(ValueError):
    """The text says what is wrong with the file."""


@dataclass(frozen=True)
class Finding:
    """`kind`: stale, in_process, custom, other_flow, unreadable or missing."""

    kind: str
    node: str
    title: str
    text: str


@dataclass(frozen=True)
class Node:
    id: str
    type: str
    title: str
    source: str | None  # None: the node has none
    fields: dict

    def names(self, tree: ast.Module | None) -> set[str]:
        """All that the node can be known by; what its source says of itself counts, since Langflow runs that."""
        known = {self.type, self.title}
        for one in (tree.body if tree else []):
            if isinstance(one, ast.ClassDef):
                known.add(one.name)
                for line in one.body:
                    if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                        known |= {str(line.value.value) for name in line.targets
                                  if isinstance(name, ast.Name) and name.id in ("name", "display_name")}
        return known


def _field(template, name: str):
    one = template.get(name) if isinstance(template, dict) else None
    return one.get("value") if isinstance(one, dict) else None


def _nodes(listed, depth: int = 0) -> list[Node]:
    if not isinstance(listed, list) or depth > DEPTH:
        raise NotAFlow("its nodes are no list" if depth <= DEPTH else f"its groups are more than {DEPTH} deep")
    found = []
    for one in listed:
        data = one.get("data") if isinstance(one, dict) else None
        if not isinstance(data, dict):
            raise NotAFlow("a node has no data")
        inner = data.get("node") if isinstance(data.get("node"), dict) else {}
        flow = inner.get("flow")
        if isinstance(flow, dict) and isinstance(flow.get("data"), dict):
            found += _nodes(flow["data"].get("nodes"), depth + 1)
            continue
        template = inner.get("template") if isinstance(inner.get("template"), dict) else {}
        source = _field(template, "code")
        found.append(Node(str(one.get("id") or data.get("id")), str(data.get("type", "")),
                          str(inner.get("display_name") or data.get("type") or "?"),
                          source if isinstance(source, str) and source.strip() else None,
                          {name: _field(template, name) for name in template}))
    return found


def read_flow(text: str) -> list[Node]:
    """Raises NotAFlow."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise NotAFlow(f"is no JSON ({why})") from None
    listed = told.get("flows") if isinstance(told, dict) else told  # of one flow, or of several
    nodes = []
    for flow in listed if isinstance(listed, list) else [told]:
        inner = flow.get("data") if isinstance(flow, dict) and isinstance(flow.get("data"), dict) else flow
        if not isinstance(inner, dict) or "nodes" not in inner:
            raise NotAFlow("has no nodes; export the flow from Langflow")
        nodes += _nodes(inner["nodes"])
    return nodes


def stock_hashes() -> set[str] | None:
    """Of the sources of the installed lfx's components, this version's and those before it; None where there is no lfx."""
    found = importlib.util.find_spec("lfx")
    if found is None or not found.submodule_search_locations:
        return None
    folder = pathlib.Path(next(iter(found.submodule_search_locations)), "_assets")
    try:
        index = json.loads((folder / "component_index.json").read_text())
        hashes = {one["metadata"]["code_hash"] for _, listed in index["entries"] for one in listed.values() if "metadata" in one}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    try:
        for one in json.loads((folder / "stable_hash_history.json").read_text()).values():
            hashes |= set(one["versions"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return hashes | extension_hashes()


def extension_hashes() -> set[str]:
    """Of every source file of the packages here that bring components, ours among them."""
    hashes = set()
    for group in EXTENSIONS:
        for entry in importlib.metadata.entry_points(group=group):
            for file in (entry.dist.files or []) if entry.dist else []:
                if file.suffix == ".py":
                    try:
                        hashes.add(hash_of(pathlib.Path(file.locate()).read_text(encoding="utf-8")))
                    except (OSError, UnicodeDecodeError):
                        pass
    return hashes


def hash_of(source: str) -> str:
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()[:12]


def _calls_sandbox(tree: ast.Module) -> bool:
    return any(isinstance(one, ast.Call) and (isinstance(one.func, ast.Name) and one.func.id == SANDBOX_CALL or
                                              isinstance(one.func, ast.Attribute) and one.func.attr == SANDBOX_CALL)
               for one in ast.walk(tree))


def imports_of(tree: ast.Module) -> set[str]:
    """Top-level modules without which the source does not run: what is only tried, or only for types, is not among them."""
    found: set[str] = set()

    def walk(body):
        for one in body:
            if isinstance(one, ast.Import):
                found.update(name.name.partition(".")[0] for name in one.names)
            elif isinstance(one, ast.ImportFrom):
                if one.module and not one.level:
                    found.add(one.module.partition(".")[0])
            elif isinstance(one, ast.Try):
                walk([*one.orelse, *one.finalbody])
            elif isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test):
                walk(one.orelse)
            else:
                walk(ast.iter_child_nodes(one))

    walk(tree.body)
    return found - set(sys.stdlib_module_names) - HOST_MODULES


def _check_node(node: Node, stock: set[str] | None) -> tuple[list[Finding], set[str]]:
    def finding(kind, text):
        return Finding(kind, node.id, node.title, text)

    tree = None
    found = []
    if node.source is not None:
        try:
            tree = ast.parse(node.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return [finding("unreadable", "its source is no Python that can be read here; open the node in Langflow")], set()
    names = node.names(tree)
    if names & INTERPRETERS.keys():
        if tree is None or not _calls_sandbox(tree):
            found.append(finding("stale", "was saved by a Langflow without sandboxes and runs its code in the Langflow process; update the "
                                          "node on the canvas and save the flow"))
    for name in sorted(names & IN_PROCESS.keys())[:1]:
        found.append(finding("in_process", f"{IN_PROCESS[name]} in the Langflow process, with any backend; replace it by Caisson Sandbox "
                                           "or Python Interpreter"))
    if names & CSV_AGENTS and node.fields.get("allow_dangerous_code") is not False:
        found.append(finding("in_process", "runs code that a model wrote in the Langflow process; switch allow_dangerous_code off"))
    if names & OTHER_FLOWS:
        found.append(finding("other_flow", "runs another flow; check that one, too"))
    if node.source is not None and stock is not None and hash_of(node.source) not in stock:
        found.append(finding("custom", "its source is not that of the installed lfx, and Langflow runs it in its own process when the "
                                       "flow is loaded; update the node, or set LANGFLOW_ALLOW_CUSTOM_COMPONENTS=false"))
    return found, imports_of(tree) if tree else set()


def check(text: str, stock: set[str] | None, modules: set[str] | None = None, image: str = "the image") -> list[Finding]:
    """`modules`: what the image can import; None: not asked. Raises NotAFlow."""
    found = []
    for node in read_flow(text):
        findings, imports = _check_node(node, stock)
        found += findings
        if modules is not None and (missing := sorted(imports - modules)):
            found.append(Finding("missing", node.id, node.title, f"imports {', '.join(missing)}, which {image} does not have; build an "
                                                                 "image that has, or name it in CAISSON_EXECUTOR_PIP"))
    return found
