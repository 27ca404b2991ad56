# SPDX-License-Identifier: Apache-2.0
"""Prints the JSON Schemas of a few dozen Pydantic models, one a line. Run where Pydantic is."""

import datetime
import decimal
import enum
import json
import typing
import uuid

import pydantic
from pydantic import Field


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Point(pydantic.BaseModel):
    x: float
    y: float = 0.5


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str = Field(min_length=1, max_length=6, pattern=r"^[a-z]+\d*$")
    count: int = Field(ge=0, lt=10, multiple_of=2)


class Tree(pydantic.BaseModel):
    value: int
    children: list["Tree"] = []


class Cat(pydantic.BaseModel):
    kind: typing.Literal["cat"]
    lives: int = Field(gt=0, le=9)


class Dog(pydantic.BaseModel):
    kind: typing.Literal["dog"]
    tricks: set[str] = Field(default_factory=set, max_length=3)


class Owner(pydantic.BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")
    other: Cat | Dog | None = None
    boxes: dict[str, Point | None] = {}
    keyed: dict[typing.Annotated[str, Field(pattern="^k")], int] = {}


FIELDS = [int, float, str, bool, None, typing.Any, int | None, str | int, list[int], dict[str, int],
          tuple[int, str], tuple[int, ...], set[int], Colour, Size, Point, Closed, Tree, Owner,
          typing.Literal["a", 1, None], typing.Literal[True], datetime.date, datetime.datetime, uuid.UUID,
          decimal.Decimal, bytes, list[Point | None], dict[str, list[Cat | Dog]], list[dict[str, str]],
          typing.Annotated[list[int], Field(min_length=1, max_length=3)],
          typing.Annotated[float, Field(ge=0.5, multiple_of=0.25)],
          typing.Annotated[dict[str, int], Field(min_length=1, max_length=2)]]

for model in (Point, Closed, Tree, Owner):
    print(json.dumps(model.model_json_schema()))
for i, field in enumerate(FIELDS):
    single = pydantic.create_model(f"M{i}", value=(field, ...))
    print(json.dumps(single.model_json_schema()))
    other = FIELDS[(i * 7 + 3) % len(FIELDS)]
    both = pydantic.create_model(f"N{i}", first=(field, ...), second=(typing.Optional[other], None))
    print(json.dumps(both.model_json_schema()))
