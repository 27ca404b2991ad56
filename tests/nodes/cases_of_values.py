# SPDX-License-Identifier: Apache-2.0
"""The values that nodes are tried on."""

TEXTS = [
    "", "a", " a ", "Hello World", "it's", 'say "x"', "both ' and \"", "tab\there", "line\nbreak", "ß straße ŉ",
    "ΑΣ ΟΔΥΣΣΕΥΣ Σ", "ǆ Ǆ ǅ", "İstanbul", "ﬁ ﬀ", "naïve café", "x\u00a0y", "\u2028\u200b\ufeff", "😀 emoji",
    "o'neil mac-donald 3rd", "ΣΑΣ. Σ'Σ", "\x07\x7f\x80", "a\u0301b", "𐐀𐐨", "1st 2ND x3y", "АБВ где", "ᾳ ᾼ ΰ",
]
NUMBERS = [0, 1, -1, 7, 10**20, -(10**30), 2**63, 0.0, -0.0, 1.0, 1.5, -2.75, 1e16, 1e-7, 1e22, 5e-324, 123456789.125]
NUMBER_TEXTS = [
    "0", "12", " 12 ", "+5", "-7", "1_000", "1__0", "_1", "1.5", "1e3", "0x10", "", " ", "abc", "٣٤", "１２", "1.", ".5",
    "inf", "-Infinity", "1e400", "९", "12\n", "1 2", "--1", "0b1", "1e", "²",
]
OTHERS = [None, True, False, [], {}, [1, "a", None], {"k": 1, "l": [True, {"m": 1.5}]}, [[]], {"": ""}]
VALUES = TEXTS + NUMBERS + NUMBER_TEXTS + OTHERS
CONVERSIONS = ["identity", "string", "int", "float", "bool", "lower", "upper", "title", "length"]


def plain(*configs):
    return [(config, {}, {}) for config in configs]
