# SPDX-License-Identifier: Apache-2.0
"""Schema classes to compare: fixed ones for each rule, and random ones."""

import random

FRAME = '''class Other(BaseModel):
    a: int

class Third(BaseModel):
    """Not a description."""
    deep: Other | None = None
    items: list[Other]

class S(BaseModel):
{fields}

def orcheo_workflow():
    graph = StateGraph(dict)
    graph.add_node("n", AgentNode(name="n", ai_model="m", response_format=S))
    graph.add_edge(START, "n")
    return graph
'''

FIELDS = """
x: Other | int
x: dict[Other, int]
x: dict[Literal["a"], int]
x: Literal["a", ("b", "c")]
x: Literal[("a", "b")]
x: Literal[()]
x: Literal["a", "a"]
x: Literal[1, True, 1.0]
x: Literal[[1, 2]]
x: Literal[{"a": 1}]
x: Literal[None, "a"]
x: Literal["a", "b"] | Literal["b", "a"]
x: None | None
x: Any | None
x: int | (str | int)
x: list[list[int] | None]
x: Other = {"a": 1}
x: Other = Field(description="dd")
x: Other = Field(title="Other")
x: Other | None = Field(default=None, description="q")
x: int = Field(ge=1.5)
x: str = Field(ge="a")
x: int = Field(ge="a")
x: float | None = Field(ge="a", default=None)
x: int = Field(ge=[1])
x: int = Field(ge=True)
x: float = Field(multiple_of={})
x: str = Field(max_length=99999999999999999999999)
x: float = Field(strict="x")
x: str = Field(min_length=-1)
x: str = Field(min_length="3")
x: str = Field(min_length=True)
x: int = Field(multiple_of=0)
x: list[int] = Field(min_length=1, pattern="a")
x: list[int] = Field(ge=1, min_length=1)
x: str = Field(pattern="(")
x: str = Field(pattern="(?=a)b")
x: str = Field(ge=1, pattern="a")
x: str | int | None = Field(ge=2)
x: Other = Field(pattern="a")
x: Any = Field(strict=True)
x: dict[str, int] = Field(min_length=1, max_length=3)
x: int = Field(allow_inf_nan=True)
x: int | str = Field(union_mode="bad")
x: int = Field(max_digits=3, decimal_places=1)
x: int = Field(alias="q")\\ny: int = Field(alias="q")
x: int = Field(alias=5)
x: int = Field(validation_alias="q", alias="r")
x: int = Field(serialization_alias=3)
x: int = Field(title=5)
x: int = Field(deprecated=1)
x: int = Field(deprecated="")
x: int = Field(examples=[1, {"b": 1, "a": 2}])
x: int = Field(json_schema_extra={"z": 1, "a": {"y": 1, "b": 2}})
x: int = Field(json_schema_extra={"type": "string", "title": "TT"})
x: int = Field(json_schema_extra=[1])
x: int = Field(zzz=1, aaa="b")
x: int = Field(zzz=1, json_schema_extra={"a": 1})
x: int = Field(min_items=1)
x: list[int] = Field(min_items=1, max_items=3)
x: int = Field(include=True)
x: int = Field(exclude="q")
x: int = Field(default_factory=3)
x: int = Field(default_factory=0)
x: list[Any] = [{"b": {"z": 1, "y": 2}, "a": 2}]
default: int = 3
properties: int = Field(3, description="d")
x: int = 100000000000000000000000
x: int = Field(gt=None, min_length=None, pattern=None)
x: str = Field(json_schema_extra={"$ref": "#/$defs/Q"})
x: int = Field(json_schema_extra={"$ref": "https://a"})
x: Other = Field(json_schema_extra={"type": "object", "required": ["a"]})
x: int = Field(examples=[{"$ref": "q"}])
x: int = 3\\nx: str
x: int\\ny: str\\nx: float = 2.0
xY_z9: int
a__b: int
a_b_2c: int
from_: int
éa: int
straße: int
x: int = Field(alias="ñandú_x ß")
x: int = Field(alias="  a  ")
x: int = Field(alias="it's")
model_dump: int
model_x: int
copy: int = 3
x: int = -True
x: Literal[-True]
x: int = other()
x: int = Field(1, 2)
x: int = Field(**{})
x: int = a.Field(1)
x: int = Field(...)
x: "int"
x: Optional[int]
x: a.b
x: dict[str]
x: list[int, str]
x: list
x: int & str
x: int | 3
x: Literal[x]
x: Literal["[[a]]"]
x: Missing
x: S
x: list[Other | Missing]
x: int = "[[a]]"
x: int = Field(description="[[a]]")
x: Literal[1, "a"] | Literal[True, "a"]
x: Third
x: Third\\ny: Other
x: dict[str, Third | None] | list[Other]
pass
x = 3
x.y: int
_x: int
"text"\\nx: int
x: int = f"a"
x: int = {"a": b}
x: float = 1e16
""".strip().split("\n")

ANNOTATIONS = ["str", "int", "float", "bool", "Any", "None", "Other", "Third", 'Literal["a"]',
               'Literal["a", "b"]', "Literal[1, 2]", 'Literal[1, "x", None]', "Literal[True]"]
DEFAULTS = ["3", '"abc"', "None", "True", "1.5", "[]", "[1, 2]", '{"b": 1, "a": [True]}', "-7",
            "(1, 2)", '""']
NUMBERS = ["0", "1", "3", "2.5", "-1", "10"]
OPTIONS = {
    "default": DEFAULTS,
    "description": ['"what it is"', '""'],
    "title": ['"A Title"', '""'],
    "examples": ["[1]", '["a", {"z": 1, "b": 2}]'],
    "deprecated": ["True", "False", '"old"'],
    "ge": NUMBERS, "le": NUMBERS, "gt": NUMBERS, "lt": NUMBERS, "multiple_of": ["2", "0.5", "3"],
    "min_length": ["0", "1", "5"], "max_length": ["3", "10"],
    "pattern": ['"^a+$"', '"[a-z]{2,}"'],
    "alias": ['"other_name"', '"x y"', '"_z"'],
    "validation_alias": ['"val"'],
    "serialization_alias": ['"ser"'],
    "json_schema_extra": ['{"format": "date"}', '{"b": {"d": 1, "c": [1]}, "a": None}'],
    "max_digits": ["3"], "decimal_places": ["2"],
    "strict": ["True", "False"], "exclude": ["True"], "frozen": ["True"], "repr": ["False"],
    "allow_inf_nan": ["True", "False"], "coerce_numbers_to_str": ["True"], "fail_fast": ["True"],
    "union_mode": ['"smart"'], "extra_key": ["1", '"v"', "[2]"], "kw_only": ["True"],
}
NAMES = ["x", "some_name", "camelCase", "URL", "x1y", "default", "properties", "title", "a_b_2c"]


def annotation(rng, depth=0):
    kind = rng.random()
    if depth > 2 or kind < 0.5:
        return rng.choice(ANNOTATIONS)
    if kind < 0.65:
        return f"list[{annotation(rng, depth + 1)}]"
    if kind < 0.75:
        return f"dict[{rng.choice(['str', 'str', annotation(rng, 3)])}, {annotation(rng, depth + 1)}]"
    if kind < 0.95:
        return f"{annotation(rng, depth + 1)} | {annotation(rng, depth + 1)}"
    return f"({annotation(rng, depth + 1)})"


def default(rng):
    kind = rng.random()
    if kind < 0.25:
        return ""
    if kind < 0.4:
        return f" = {rng.choice(DEFAULTS)}"
    names = rng.sample(sorted(OPTIONS), rng.choice([0, 1, 1, 2, 2, 3, 5]))
    options = [f"{name}={rng.choice(OPTIONS[name])}" for name in names]
    if "default" not in names and rng.random() < 0.3:
        options.insert(0, rng.choice(DEFAULTS))
    return f" = Field({', '.join(options)})"


def source(fields):
    return FRAME.replace("{fields}", "\n".join("    " + line for line in fields))


def cases(count, seed):
    for line in FIELDS:
        yield line, source(line.split("\\n"))
    rng = random.Random(seed)
    for number in range(count):
        fields = [f"{name}: {annotation(rng)}{default(rng)}"
                  for name in rng.sample(NAMES, rng.choice([1, 1, 1, 2, 4]))]
        yield "\\n".join(fields), source(fields)
