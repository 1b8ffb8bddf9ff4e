"""A hundred JSON Schemas of growing difficulty. Texts, lists and numbers are short, so that no
answer needs many tokens; only recursion may go on. (A number without a bound on its digits is one
that a small model does not find the end of.)"""

from typing import Any

Schema = dict[str, Any]

WORD: Schema = {"type": "string", "maxLength": 6}
DIGIT: Schema = {"type": "integer", "minimum": 0, "maximum": 9}
FLAG: Schema = {"type": "boolean"}


def record(*optional: str, **fields: Schema | bool) -> Schema:
    """A closed object whose fields are required but for the `optional` ones."""
    required = [name for name in fields if name not in optional]
    return {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


def several(item: Schema | bool, least: int = 0, most: int = 2) -> Schema:
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}


def one_of(*options: Schema) -> Schema:
    return {"anyOf": list(options)}


def named(item: Schema) -> Schema:
    """A map from short names."""
    return {
        "type": "object",
        "patternProperties": {"^[a-z]{1,4}$": item},
        "additionalProperties": False,
        "maxProperties": 1,
    }


SCALARS: list[Schema] = [
    FLAG,
    {"type": "null"},
    DIGIT,
    WORD,
    {"const": "fixed"},
    {"const": {"a": [1, None]}},
    {"enum": ["red", "green", "blue"]},
    {"enum": [1, "1", None, True]},
    {"type": ["integer", "null"], "minimum": 1, "maximum": 3},
    {"type": "string", "minLength": 2, "maxLength": 4},
]
NUMBERS: list[Schema] = [
    {"type": "integer", "minimum": -5, "maximum": 5},
    {"type": "integer", "minimum": 1000, "maximum": 1010},
    {"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 9},
    {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.25},
    {"type": "number", "exclusiveMinimum": -1, "exclusiveMaximum": 1, "multipleOf": 0.5},
    {"type": "number", "minimum": 99.5, "maximum": 100.25, "multipleOf": 0.125},
    {"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 25},
    {"type": "integer", "minimum": 9007199254740993, "maximum": 9007199254741009},
    {"type": "integer", "maximum": -10, "minimum": -99},
    {"type": "number", "minimum": 2, "maximum": 2, "multipleOf": 0.5},
]
TEXTS: list[Schema] = [
    {"type": "string", "pattern": "^[A-Z]{3}$"},
    {"type": "string", "pattern": "^[0-9]{3}-[0-9]{4}$"},
    {"type": "string", "pattern": "^(cat|dog)s?$"},
    {"type": "string", "pattern": "^a.{1,3}z$"},
    {"type": "string", "pattern": '^"[a-z]{1,3}"$'},
    {"type": "string", "pattern": "^\\d{4}/\\d{2}$"},
    {"type": "string", "pattern": "^[é東]{1,3}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
]
LISTS: list[Schema] = [
    several(DIGIT),
    several(FLAG, 1, 1),
    several(WORD, 2, 2),
    several(one_of(DIGIT, {"type": "null"}), 1, 3),
    several(several(DIGIT)),
    several(several(several(FLAG, 1, 1), 1, 1), 1, 1),
    {"type": "array", "prefixItems": [WORD, DIGIT], "items": False, "minItems": 2},
    {"type": "array", "prefixItems": [DIGIT], "items": FLAG, "minItems": 1, "maxItems": 3},
    several({"enum": ["a", "b"]}, 3, 3),
    {"type": "array", "maxItems": 0},
]
RECORDS: list[Schema] = [
    record(name=WORD),
    record(name=WORD, age=DIGIT),
    record("note", name=WORD, note=WORD),
    record("a", "b", "c", a=DIGIT, b=DIGIT, c=DIGIT),
    record(ok=FLAG, none={"type": "null"}, list=several(DIGIT)),
    record(**{"a b": DIGIT, 'q"uote': FLAG, "ümlaut": DIGIT}),
    {"type": "object", "maxProperties": 0},
    {"type": "object", "properties": {}, "additionalProperties": False},
    record(kind={"const": "x"}, value={"enum": [1, 2]}),
    record(**{f"field_{n}": FLAG for n in range(8)}),
]
NESTED: list[Schema] = [
    record(inner=record(value=DIGIT)),
    record(a=record(b=record(c=record(d=FLAG)))),
    record(people=several(record(name=WORD, age=DIGIT), 1, 2)),
    record(point=record(x=DIGIT, y=DIGIT), tags=several(WORD)),
    several(record("b", a=DIGIT, b=several(FLAG)), 1, 2),
    record(matrix=several(several(DIGIT, 2, 2), 2, 2)),
    record("left", "right", left=record(x=DIGIT), right=record(y=DIGIT)),
    record(
        user=record(
            name=WORD, address=record(city=WORD, zip={"type": "string", "pattern": "^[0-9]{5}$"})
        )
    ),
    record(a=several(record(b=several(record(c=DIGIT), 1, 1)), 1, 1)),
    record(meta=record(page=DIGIT, last=FLAG), rows=several(several(one_of(DIGIT, FLAG)), 1, 2)),
]
UNIONS: list[Schema] = [
    one_of(DIGIT, WORD),
    one_of(record(a=DIGIT), record(b=FLAG)),
    record(value=one_of(DIGIT, WORD, {"type": "null"})),
    {
        "oneOf": [
            record(kind={"const": "circle"}, radius=DIGIT),
            record(kind={"const": "square"}, side=DIGIT),
        ]
    },
    several(one_of(record(t={"const": "n"}, n=DIGIT), record(t={"const": "w"}, w=WORD)), 1, 2),
    one_of(several(DIGIT, 1, 2), record(list=several(DIGIT, 1, 2))),
    record(a=one_of(record(b=DIGIT), {"type": "null"}), c=one_of(several(FLAG), FLAG)),
    {"type": ["boolean", "integer", "null"], "minimum": 0, "maximum": 3},
    one_of({"enum": ["a", "b"]}, {"const": 0}, {"type": "array", "maxItems": 0}),
    {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 6}]},
]
REFERENCES: list[Schema] = [
    {"$defs": {"n": DIGIT}, "$ref": "#/$defs/n"},
    {"$defs": {"n": DIGIT}, **record(a={"$ref": "#/$defs/n"}, b={"$ref": "#/$defs/n"})},
    {"definitions": {"w": WORD}, **several({"$ref": "#/definitions/w"}, 1, 2)},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": FLAG}, **record(x={"$ref": "#/$defs/a"})},
    {**record(first=DIGIT, second={"$ref": "#/properties/first"})},
    {
        "$defs": {"point": record(x=DIGIT, y=DIGIT)},
        **record(line=several({"$ref": "#/$defs/point"}, 2, 2)),
    },
    {
        "$defs": {"a/b": FLAG, "c~d": DIGIT},
        **record(p={"$ref": "#/$defs/a~1b"}, q={"$ref": "#/$defs/c~0d"}),
    },
    {
        "$defs": {"id": {"type": "string", "pattern": "^[a-f0-9]{4}$"}},
        **record(ids=several({"$ref": "#/$defs/id"}, 1, 2), main={"$ref": "#/$defs/id"}),
    },
    {
        "$defs": {"p": {"type": "integer"}},
        "allOf": [{"$ref": "#/$defs/p"}, {"minimum": 1, "maximum": 2}],
    },
    {
        "$defs": {"shape": one_of(record(r=DIGIT), record(w=DIGIT, h=DIGIT))},
        **record("extra", shape={"$ref": "#/$defs/shape"}, extra={"$ref": "#/$defs/shape"}),
    },
]
OPEN_ENDED: list[Schema] = [
    {
        "type": "object",
        "properties": {"a": FLAG},
        "additionalProperties": DIGIT,
        "required": ["a"],
        "maxProperties": 1,
    },
    named(FLAG),
    {
        "type": "object",
        "properties": {"id": DIGIT},
        "required": ["id"],
        "patternProperties": {"^x_[a-z]{1,3}$": DIGIT},
        "additionalProperties": False,
        "maxProperties": 2,
    },
    {"type": "object", "required": ["a"], "additionalProperties": DIGIT, "maxProperties": 1},
    record("a", a=one_of(DIGIT, named(DIGIT)), b=DIGIT),
    record(config=named(WORD)),
    several(named(several(FLAG, 1, 1)), 1, 2),
    {"minimum": 0, "maximum": 9, "multipleOf": 0.5, "type": ["number", "boolean"]},
    record(when={"type": "string", "format": "date-time"}),
    record(mail={"type": "string", "format": "email", "maxLength": 16}),
]
RECURSIVE: list[Schema] = [
    {**record("next", value=DIGIT, next={"$ref": "#"})},
    {"$defs": {"t": several(one_of(DIGIT, {"$ref": "#/$defs/t"}), 0, 1)}, "$ref": "#/$defs/t"},
    {
        "$defs": {"tree": record(v=DIGIT, kids=several({"$ref": "#/$defs/tree"}, 0, 1))},
        "$ref": "#/$defs/tree",
    },
    {
        "$defs": {
            "list": one_of({"type": "null"}, record(head=FLAG, tail={"$ref": "#/$defs/list"})),
        },
        "$ref": "#/$defs/list",
    },
    {
        "$defs": {
            "even": record("odd", n=DIGIT, odd={"$ref": "#/$defs/odd"}),
            "odd": record("even", w=WORD, even={"$ref": "#/$defs/even"}),
        },
        **record(start={"$ref": "#/$defs/even"}),
    },
    {
        "$defs": {
            "e": one_of(
                DIGIT,
                record(op={"enum": ["+", "*"]}, l=DIGIT, r={"$ref": "#/$defs/e"}),
            )
        },
        **record(expression={"$ref": "#/$defs/e"}),
    },
    several(record("children", name=WORD, children={"$ref": "#"}), 0, 1),
    {**record("parent", id=DIGIT, tags=several(WORD), parent={"$ref": "#"})},
    {
        "$defs": {
            "json": one_of(DIGIT, FLAG, {"type": "null"}, several({"$ref": "#/$defs/json"}, 0, 1)),
        },
        **record(any={"$ref": "#/$defs/json"}),
    },
    {
        "$defs": {
            "node": record(
                "left",
                "right",
                key={"type": "string", "pattern": "^[a-z]{1,2}$"},
                left={"$ref": "#/$defs/node"},
                right=DIGIT,
            )
        },
        **record(root=one_of({"$ref": "#/$defs/node"}, {"type": "null"})),
    },
]

SCHEMAS: list[Schema] = [
    *SCALARS,
    *NUMBERS,
    *TEXTS,
    *LISTS,
    *RECORDS,
    *NESTED,
    *UNIONS,
    *REFERENCES,
    *OPEN_ENDED,
    *RECURSIVE,
]
