# SPDX-License-Identifier: Apache-2.0
"""Writes the tables by which the built-in nodes treat text as Python does.

    python3.12 tools/gen_text_tables.py

makes src/nodes/unicode_tables.inc (case mappings, printable characters, digits of Unicode 15.0, as
CPython 3.12 applies them, found by asking its str methods) and src/nodes/html_entities.inc (the
named character references of the HTML standard). The results are committed; run it again only when
the reference Python changes.
"""

import html.entities
import pathlib
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
NODES = ROOT / "src" / "nodes"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HEADER = "// SPDX-License-Identifier: Apache-2.0\n// Written by tools/gen_text_tables.py; do not edit.\n"


def ranges(holds):
    """Inclusive ranges of the characters for which `holds`."""
    result = []
    for character in CHARACTERS:
        if not holds(character):
            continue
        code = ord(character)
        if result and result[-1][1] == code - 1:
            result[-1][1] = code
        else:
            result.append([code, code])
    return result


def wrap(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > 100:
            lines.append(line)
            line = "   "
        line += " " + item + ","
    return "\n".join(lines + [line])


def range_table(name, found):
    body = wrap(f"{{{first:#x}, {last:#x}}}" for first, last in found)
    return f"inline constexpr CodeRange {name}[] = {{\n{body}\n}};\n"


def case_tables(name, mapped):
    simple, special = [], []
    for character in CHARACTERS:
        to = [ord(c) for c in mapped(character)]
        if to == [ord(character)]:
            continue
        if len(to) == 1:
            simple.append(f"{{{ord(character):#x}, {to[0]:#x}}}")
        else:
            padded = ", ".join(f"{c:#x}" for c in to + [0] * (3 - len(to)))
            special.append(f"{{{ord(character):#x}, {{{padded}}}}}")
    return (
        f"inline constexpr SimpleCase k{name}Simple[] = {{\n{wrap(simple)}\n}};\n"
        f"inline constexpr SpecialCase k{name}Special[] = {{\n{wrap(special)}\n}};\n"
    )


def is_cased(character):
    return (character + "a").title()[-1] == "a"


def is_case_ignorable(character):
    alone = (character + "\u03a3").lower()[-1]
    return alone == "\u03c3" and ("A" + character + "\u03a3").lower()[-1] == "\u03c2"


def unicode_tables():
    zeros = [f"{ord(c):#x}" for c in CHARACTERS if unicodedata.decimal(c, None) == 0]
    digits = ranges(lambda c: c.isdigit() and unicodedata.decimal(c, None) is None)
    return (
        HEADER
        + range_table("kNotPrintable", ranges(lambda c: not c.isprintable()))
        + range_table("kCased", ranges(is_cased))
        + range_table("kCaseIgnorable", ranges(is_case_ignorable))
        + range_table("kDigitsNotDecimal", digits)
        + f"inline constexpr std::uint32_t kDecimalZeros[] = {{\n{wrap(zeros)}\n}};\n"
        + case_tables("Lower", str.lower)
        + case_tables("Upper", str.upper)
        + case_tables("Title", str.title)
    )


def html_table():
    rows = []
    for name, text in sorted(html.entities.html5.items()):
        codes = [ord(c) for c in text]
        second = codes[1] if len(codes) > 1 else 0
        rows.append(f'{{"{name}", {codes[0]:#x}, {second:#x}}}')
    return HEADER + f"inline constexpr HtmlEntity kHtmlEntities[] = {{\n{wrap(rows)}\n}};\n"


def main():
    if sys.version_info[:2] != (3, 12):
        sys.exit("gen_text_tables.py: the tables are those of Python 3.12; run it with that version")
    (NODES / "unicode_tables.inc").write_text(unicode_tables(), encoding="utf-8")
    (NODES / "html_entities.inc").write_text(html_table(), encoding="utf-8")


if __name__ == "__main__":
    main()
