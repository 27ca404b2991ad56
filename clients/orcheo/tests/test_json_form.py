# SPDX-License-Identifier: Apache-2.0
import collections
import enum
import json
import math
import unittest

from caisson_orcheo.json_form import NotJson, to_json


class Model:
    def model_dump(self):
        return {"content": "x", "parts": (1, 2)}


class Colour(str, enum.Enum):
    RED = "red"


class JsonForm(unittest.TestCase):
    def test_keeps_what_is_json(self):
        value = {"a": [1, 2.5, "ß", None, True, 10**400], "b": {}}
        self.assertEqual(to_json(value), value)

    def test_makes_json_of_models_tuples_and_mappings(self):
        value = {"m": [Model()], "t": ((1,), ()), "o": collections.OrderedDict(k=1), "c": Colour.RED}
        self.assertEqual(json.dumps(to_json(value)),
                         '{"m": [{"content": "x", "parts": [1, 2]}], "t": [[1], []], "o": {"k": 1}, "c": "red"}')

    def test_names_the_place_of_what_is_not(self):
        cases = [({"a": [1, {2}]}, "$.a[1]: a set"), ({"a": {"b": math.nan}}, "$.a.b: the number nan"), (b"x", "$: a bytes"),
                 ({"a": {1: 2}}, "$.a: the key 1"), (["\ud800"], "$[0]: the text has a lone surrogate"), ([Model], "$[0]: a type"),
                 ([10**5000], "$[0]: the integer"), ([lambda: None], "$[0]: a function")]
        for value, said in cases:
            with self.assertRaises(NotJson) as caught:
                to_json(value)
            self.assertTrue(str(caught.exception).startswith(said), caught.exception)

    def test_ends_in_a_cycle(self):
        cycle = []
        cycle.append(cycle)
        with self.assertRaises(NotJson):
            to_json(cycle)


if __name__ == "__main__":
    unittest.main()
