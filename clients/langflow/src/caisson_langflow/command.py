# SPDX-License-Identifier: Apache-2.0
"""The command caisson-langflow. `check` exits with 0 when nothing was found, 1 when something was, 2 when it could not be done."""

import argparse
import json
import pathlib
import sys

from .flow_check import NotAFlow, check, stock_hashes

# What python3 in an image can import. Its own folder is no part of that.
LIST_MODULES = "import pkgutil, sys; sys.path[0:1] = []; print(*sorted({one.name for one in pkgutil.iter_modules()}), sep='\\n')"
MOST_BYTES = 64 << 20  # of a flow's file


def _modules_of(image: str) -> set[str]:
    """Asked in a machine of that image, which is deleted then."""
    import os

    from .guest import Request, Run

    os.environ["CAISSON_SANDBOX_ROOTFS"] = image
    outcome = Run(Request(LIST_MODULES, with_files=False)).execute()
    if outcome.ending.exit_code != 0:
        raise RuntimeError(f"python3 of the image {image} failed: {outcome.stderr[:500]}")
    return set(outcome.stdout.split())


def _words() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="caisson-langflow", description="For operators of Langflow with a Caisson server.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("check", help="say what of saved flows runs in the Langflow process",
                              description="Names nodes whose saved source runs code in the Langflow process, and with --image or "
                              "--modules those whose imports are missing there. Nothing of the flow is run.")
    one.add_argument("flow", nargs="+", help="an exported flow (JSON)")
    one.add_argument("--image", help="ask a machine of this image (by CAISSON_SANDBOX_BASE_URL and _API_KEY) what it can import")
    one.add_argument("--modules", metavar="FILE", help="instead a list of modules that can be imported, one a line")
    one.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def _read(name: str) -> str:
    path = pathlib.Path(name)
    if path.stat().st_size > MOST_BYTES:
        raise NotAFlow(f"has more than {MOST_BYTES} bytes")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise NotAFlow("is no UTF-8") from None


def main(words: list[str] | None = None) -> int:
    told = _words().parse_args(words)
    try:
        modules = None
        if told.modules:
            modules = set(pathlib.Path(told.modules).read_text().split())
        elif told.image:
            modules = _modules_of(told.image)
    except Exception as why:  # noqa: BLE001: whatever it is, its text says what to do
        print(f"caisson-langflow: what the image has is not known: {why}", file=sys.stderr)
        return 2
    stock = stock_hashes()
    if stock is None:
        print("caisson-langflow: lfx is not installed here, so edited sources are not recognized", file=sys.stderr)
    worst = 0
    for name in told.flow:
        try:
            found = check(_read(name), stock, modules, f"the image {told.image}" if told.image else "the image")
        except (OSError, NotAFlow) as why:
            print(f"caisson-langflow: {name}: {why}", file=sys.stderr)
            worst = 2
            continue
        worst = max(worst, 1 if found else 0)
        for one in found:
            if told.json:
                print(json.dumps({"flow": name, **vars(one)}))
            else:
                print(f"{name}: {one.title} ({one.node}): {one.text}")
        if not found and not told.json:
            print(f"{name}: nothing of its saved nodes runs code in the Langflow process")
    return worst


if __name__ == "__main__":
    sys.exit(main())
