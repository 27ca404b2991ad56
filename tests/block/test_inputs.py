# SPDX-License-Identifier: Apache-2.0
"""What a script finds in `documents` is what the json module makes of the same text.

    test_inputs.py BIN RUNTIME [OPTION of block serve …]
"""

import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from service import FIRST_RUN, Host  # noqa: E402

RUNTIME, OPTIONS = sys.argv[2], sys.argv[3:]

# The repr tells 1 from 1.0 and True, -0.0 from 0.0, and the order of keys.
REPR = "done(repr(documents))"
HOST: Host


def value(choose: random.Random, depth: int):
    kind = choose.randrange(12 if depth else 9)
    if kind == 0:
        return choose.choice([None, True, False, "", [], {}, 0, 0.0, -0.0])
    if kind in (1, 2):
        return choose.randint(-(1 << choose.choice([4, 31, 32, 63, 64, 70])), 1 << choose.choice([4, 31, 32, 63, 64, 70]))
    if kind == 3:
        return choose.choice([-1, 1]) * choose.randrange(10 ** choose.randint(18, 4000))
    if kind in (4, 5):
        return choose.choice([choose.random(), choose.uniform(-1e300, 1e300), 5e-324, 1e-310, 1.0, 2.0**53])
    if kind in (6, 7, 8):
        letters = choose.choice(["abc \n\"\\\x00", "äöü€", "a\U0001f600", "k"])
        return "".join(choose.choice(letters) for _ in range(choose.choice([0, 1, 3, 255, 256, 300])))
    if kind in (9, 10):
        return [value(choose, depth - 1) for _ in range(choose.randrange(6))]
    return mapping(choose, depth)


def mapping(choose: random.Random, depth: int) -> dict:
    keys = ["id", "key", "schlüssel", "\U0001f511", "", "x" * 300, *(f"k{choose.randrange(9000)}" for _ in range(3))]
    return {choose.choice(keys): value(choose, depth - 1) for _ in range(choose.randrange(8))}


class Inputs(unittest.TestCase):
    maxDiff = 2000

    def check(self, documents: list):
        run = HOST.run(REPR, documents=documents)
        self.assertEqual(run.results, [repr(documents)], str(run))

    def test_random_documents(self):
        for seed in range(40):
            with self.subTest(seed=seed):
                choose = random.Random(seed)
                self.check([mapping(choose, 6) for _ in range(40)])

    def test_more_keys_than_are_remembered(self):
        self.check([{f"key {i % 6000}": i, "same": None} for i in range(15000)])

    def test_deep_documents(self):
        deep = []
        for _ in range(500):
            deep = [deep]
        self.check([{"a": deep}])

    def test_a_key_that_occurs_twice_has_its_last_value_in_its_first_place(self):
        documents = '[{"a":1,"b":2,"a":3}]'
        run = HOST.follow("twice")
        HOST.service.write(json.dumps({"op": "run", "id": "twice", "script": REPR})[:-1].encode()
                           + b',"documents":' + documents.encode() + b"}\n")
        self.assertEqual(HOST.wait(run).results, [repr(json.loads(documents))])

    def test_inputs_that_the_memory_cannot_hold(self):
        run = HOST.run("done(1)", documents=[{"a": [[]] * 1_000_000}] * 8, limits={"memory_bytes": 160 << 20})
        self.assertEqual((run.end["settled_by"], run.end["error"]["code"]), ("limit", "block.limit"), str(run))
        self.check([{"a": 1}])


def main() -> int:
    global HOST
    HOST = Host("--runtime", RUNTIME, *OPTIONS)
    code = HOST.refusal()
    if code is not None:
        return code
    HOST.run("done(1)", seconds=FIRST_RUN)
    program = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False)
    return 1 if HOST.close() or not program.result.wasSuccessful() else 0


if __name__ == "__main__":
    sys.exit(main())
