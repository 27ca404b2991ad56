# SPDX-License-Identifier: Apache-2.0
"""Turns what a script passes to `done` and `debug` into JSON text; the same in every runtime.

    prepared = prepare(value, options)   reads the whole value, or raises a ResultError
    prepared.warnings                    what had to be said about it
    prepared.pieces()                    JSON texts: a list comes as several arrays, the last one last
    prepared.text()                      the whole as one JSON text

All texts are bytes, UTF-8, without a raw line end. A value is judged before its first byte leaves:
`prepare` looks at every part once, keeps what is plain as it is, and copies only what is not. Text
is made from the result piece by piece, by the C encoder of the json module.

What becomes of a value (README.md in this folder has the whole table):

- A float that is not finite, NaN of a Decimal, NaT and NA: null, at any depth.
- Two keys of one object that have the same text ({1: …, "1": …}): an error, since the host refuses
  such objects. Columns of one name in a frame: the last one wins, with a warning.
- Integers keep every digit; past 2^53 with a warning, past `max_int_digits` an error.
- Anything that is not known: an error that names the place ($.a[3]), never its repr.

Objects of a script are hostile until read: they are recognised by their real type (a lie in
`__class__` is not asked) and read by the methods of the base type, not by their own. Where a
library's own method must be called, what it returns is looked at like any other value. Libraries
are never imported here; a type names its library, and `sys.modules` has it.

A value that another thread changes between `prepare` and the last piece gives an error or text of
either state, never text that is no JSON.
"""

import sys
from _collections import OrderedDict, deque
from _json import encode_basestring, make_encoder
from builtins import (
    abs,
    all,
    any,
    ascii,
    AttributeError,
    BaseException,
    bool,
    bytearray,
    bytes,
    complex,
    dict,
    enumerate,
    Exception,
    float,
    frozenset,
    getattr,
    hasattr,
    id,
    int,
    isinstance,
    issubclass,
    KeyError,
    len,
    list,
    map,
    max,
    MemoryError,
    memoryview,
    min,
    next,
    object,
    OverflowError,
    property,
    range,
    RecursionError,
    repr,
    reversed,
    set,
    setattr,
    slice,
    sorted,
    staticmethod,
    str,
    sum,
    super,
    tuple,
    type,
    TypeError,
    UnicodeEncodeError,
    ValueError,
    zip,
)

# Bound here under names of this module, so that a script that rebinds builtins, or functions of
# sys, changes nothing in here by accident.
_modules = sys.modules
_set_digits = sys.set_int_max_str_digits
_get_digits = sys.get_int_max_str_digits

SAFE_INTEGER = 2**53
LARGEST_FLOAT = sys.float_info.max
PATH_SHOWN = 200  # characters of a path in a message
KEY_SHOWN = 40
WORDS_SHOWN = 300


class Options:
    """What a host may choose. Depth counts lists and objects within each other."""

    __slots__ = ("geometry", "max_bytes", "max_depth", "max_int_digits", "piece_bytes", "surrogates")

    DEFAULTS = {
        "geometry": "geojson",  # or "wkt"
        "surrogates": "error",  # or "replace": U+FFFD
        "max_depth": 512,
        "max_bytes": 256 << 20,
        "max_int_digits": 4300,
        "piece_bytes": 256 << 10,
    }

    def __init__(self, **chosen):
        for name, value in {**self.DEFAULTS, **chosen}.items():
            if name not in self.DEFAULTS:
                raise ValueError(f"the serializer has no option {name!r}; it has {', '.join(self.DEFAULTS)}")
            setattr(self, name, self._checked(name, value))

    @staticmethod
    def _checked(name, value):
        choices = {"geometry": ("geojson", "wkt"), "surrogates": ("error", "replace")}.get(name)
        if choices and value not in choices:
            raise ValueError(f"{name} is {value!r}; it may be {' or '.join(choices)}")
        if not choices and (type(value) is not int or value < 1):
            raise ValueError(f"{name} is {value!r}; it must be a whole number above 0")
        return value


DEFAULT_OPTIONS = Options()


class ResultError(Exception):
    """A value that cannot be delivered. `code` names the kind, `path` the place ("$.a[3]")."""

    __module__ = "builtins"  # scripts see a plain name
    code = "result"

    def __init__(self, path, reason):
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnserializableValue(ResultError, TypeError):
    __module__ = "builtins"
    code = "unserializable"


class CircularValue(ResultError, ValueError):
    __module__ = "builtins"
    code = "circular"


class ValueTooDeep(ResultError, ValueError):
    __module__ = "builtins"
    code = "too_deep"


class ValueTooLarge(ResultError, ValueError):
    __module__ = "builtins"
    code = "too_large"


class IntegerTooLong(ResultError, ValueError):
    __module__ = "builtins"
    code = "integer_too_long"


class LoneSurrogate(ResultError, ValueError):
    __module__ = "builtins"
    code = "lone_surrogate"


class DuplicateKey(ResultError, ValueError):
    __module__ = "builtins"
    code = "duplicate_key"


# --- Reading types without asking them ------------------------------------------------------------

_mro_of = type.__dict__["__mro__"].__get__
_name_of = type.__dict__["__name__"].__get__
_module_of = type.__dict__["__module__"].__get__
_dict_of = type.__dict__["__dict__"].__get__


def _type_module(kind):
    try:
        module = _module_of(kind)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def type_words(kind):
    """The name of a type for messages: "dict", "numpy.complex128"."""
    name, module = str.__str__(_name_of(kind)), _type_module(kind)
    if module not in ("builtins", "", "__main__"):
        name = f"{module}.{name}"
    return clean_text(name[:80])


def clean_text(text):
    """`text` with what cannot be in UTF-8 replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def error_words(error):
    """"TypeName: message" of an exception that may be hostile."""
    try:
        message = str(error)
        message = str.__str__(message) if type(message) is str else ""
    except Exception:
        message = "(its text cannot be read)"
    kind = clean_text(str.__str__(_name_of(type(error)))[:80])
    message = clean_text(message[:WORDS_SHOWN])
    return f"{kind}: {message}" if message else kind


def path_words(path):
    """["a", 3] as "$.a[3]"; long paths without their middle."""
    words = "".join(["$", *map(_step_words, path[:50]), *(["…"] if len(path) > 50 else [])])
    return words if len(words) <= PATH_SHOWN else f"{words[:PATH_SHOWN // 2]}…{words[-PATH_SHOWN // 2:]}"


def _step_words(step):
    if type(step) is not str:
        return f"[{step}]"
    if len(step) > KEY_SHOWN:
        step = step[:KEY_SHOWN] + "…"
    return f".{step}" if step.isidentifier() else f"[{ascii(step)}]"


# --- The pass over a value ------------------------------------------------------------------------


class _Records:
    """Rows of a frame that are made one by one when their text is made."""

    __slots__ = ("columns", "count", "names")

    def __init__(self, names, columns, count):
        self.names = names
        self.columns = columns
        self.count = count

    def rows(self, start, stop):
        if not self.columns:
            return [{} for _ in range(start, min(stop, self.count))]
        names = self.names
        return [dict(zip(names, row)) for row in zip(*(column[start:stop] for column in self.columns))]


class _Pass:
    """One pass: `value` returns its argument as plain data (exact dict, list, tuple, str, int,
    float, bool, None, or _Records), the argument itself where it is plain already."""

    def __init__(self, options):
        self.options = options
        self.max_depth = options.max_depth
        self.path = []
        self.open = set()  # ids of what is being read, to find circles
        # What is left when a lower bound of the text so far is taken off: of a list 2 a item, of an
        # object 5 and the key a member (quotes, colon, comma, a value of one character); of a value
        # itself what it has beyond one character.
        self.left = options.max_bytes
        self.big = None  # path of the first integer past 2^53
        self.big_count = 0
        self.long_integers = False
        self.repeated = []  # (path, name) of columns that were overwritten

    # Errors.

    def place(self):
        return path_words(self.path)

    def refuse(self, reason):
        return UnserializableValue(self.place(), reason)

    def too_large(self):
        limit = self.options.max_bytes
        return ValueTooLarge(self.place(), f"the value has more than {limit} bytes of JSON; deliver less, or in several calls of done")

    def take(self, size):
        self.left -= size
        if self.left < 0:
            raise self.too_large()

    def room(self, size):
        """Before something is made that will take `size` at least."""
        if self.left < size:
            raise self.too_large()

    # Containers.

    def enter(self, value):
        key = id(value)
        if key in self.open or self.left < 0 or len(self.path) >= self.max_depth:
            raise self.stopped(key)
        self.open.add(key)
        return key

    def stopped(self, key):
        if key in self.open:
            return CircularValue(self.place(), "the value contains itself; deliver a copy without the circle")
        if self.left < 0:
            return self.too_large()
        return ValueTooDeep(self.place(), f"the value is nested more than {self.max_depth} levels deep")

    def value(self, value):
        kind = type(value)
        if kind is dict:
            return self.read_dict(value)
        if kind is list or kind is tuple:
            return self.read_list(value)
        if kind is str:
            self.left -= len(value) + 1
            return value if value.isascii() else self.text(value)
        if kind is float:
            return value if -LARGEST_FLOAT <= value <= LARGEST_FLOAT else None
        if kind is int:
            if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
                self.big_integer(value)
            return value
        if value is None or kind is bool:
            return value
        return self.rich(value, kind)

    # The two loops repeat the tests of `value`: they run once for every value of a result. They
    # call each other directly, so that a level of nesting is one level of the stack.

    def read_list(self, items):
        """An exact list or tuple."""
        key = self.enter(items)
        size = len(items)
        self.left -= 2 * size or 1
        changed = None
        if size < 8 or type(items[0]) not in _SCALARS or not self.uniform(items):
            path = self.path
            for index, item in enumerate(items):
                kind = type(item)
                if kind is str:
                    if item.isascii():
                        self.left -= len(item) + 1
                        continue
                elif kind is float:
                    if -LARGEST_FLOAT <= item <= LARGEST_FLOAT:
                        continue
                elif kind is int:
                    if -SAFE_INTEGER <= item <= SAFE_INTEGER:
                        continue
                elif kind is bool or item is None:
                    continue
                path.append(index)
                if kind is dict:
                    plain = self.read_dict(item)
                elif kind is list:
                    plain = self.read_list(item)
                else:
                    plain = self.value(item)
                path.pop()
                if plain is not item:
                    if changed is None:
                        changed = list(items)
                    changed[index] = plain
        self.open.discard(key)
        return items if changed is None else changed

    def uniform(self, items):
        """Whether `items` has scalars of one type, of which none needs a change."""
        kinds = set(map(type, items))
        if len(kinds) != 1:
            return False
        kind = kinds.pop()
        if kind is float:
            return -LARGEST_FLOAT <= sum(items) <= LARGEST_FLOAT
        if kind is int:
            return -SAFE_INTEGER <= min(items) and max(items) <= SAFE_INTEGER
        if kind is not str or not all(map(str.isascii, items)):
            return False
        self.take(sum(map(len, items)) + len(items))
        return True

    def read_dict(self, source):
        """An exact dict."""
        key = self.enter(source)
        changed = None
        path = self.path
        before = self.left, self.big, self.big_count
        left = self.left
        for name, item in source.items():
            if type(name) is not str or not (name.isascii() or self.text(name) is name):
                self.left, self.big, self.big_count = before
                changed = self.keyed(source.items())
                break
            kind = type(item)
            left -= len(name) + 5
            if kind is str:
                if item.isascii():
                    left -= len(item) + 1
                    continue
            elif kind is float:
                if -LARGEST_FLOAT <= item <= LARGEST_FLOAT:
                    continue
            elif kind is int:
                if -SAFE_INTEGER <= item <= SAFE_INTEGER:
                    continue
            elif kind is bool or item is None:
                continue
            self.left = left
            path.append(name)
            if kind is dict:
                plain = self.read_dict(item)
            elif kind is list:
                plain = self.read_list(item)
            else:
                plain = self.value(item)
            path.pop()
            left = self.left
            if plain is not item:
                if changed is None:
                    changed = dict(source)
                changed[name] = plain
        else:
            self.left = left
        self.open.discard(key)
        return source if changed is None else changed

    def keyed(self, pairs):
        """Pairs of anything as an object."""
        out = {}
        for key, item in pairs:
            name = self.key(key)
            if name in out:
                raise DuplicateKey(self.place(), f"two keys have the same text {ascii(name[:KEY_SHOWN])} once they are JSON; rename one")
            self.take(len(name) + 5)
            self.path.append(name)
            out[name] = self.value(item)
            self.path.pop()
        return out

    def key(self, key):
        if type(key) is not str:
            key = self.scalar_key(key)
        return key if key.isascii() else self.text(key)

    def scalar_key(self, key):
        kind = type(key)
        big, count = self.big, self.big_count  # a key is text: no number loses digits
        plain = None if kind in _CONTAINERS else self.value(key)
        self.big, self.big_count = big, count
        kind_of_plain = type(plain)
        if kind_of_plain is str:
            return plain
        if kind_of_plain is bool:
            return "true" if plain else "false"
        if plain is None and kind not in _CONTAINERS:
            return "null"
        if kind_of_plain is int:
            return self.digits(plain)
        if kind_of_plain is float:
            return float.__repr__(plain)
        raise self.refuse(f"a key of type {type_words(kind)} has no text; use a str, a number, a date or an Enum as key")

    # Scalars.

    def big_integer(self, value):
        if value.bit_length() > _SHORT_BITS:
            self.long_integer(value)
        self.big_count += 1
        if self.big is None:
            self.big = self.place()

    def long_integer(self, value):
        limit = self.options.max_int_digits
        fewest = int((value.bit_length() - 1) * 0.30102) + 1  # digits
        if fewest > limit or (fewest > limit - 2 and abs(value) >= 10**limit):
            raise IntegerTooLong(self.place(), f"an integer of about {fewest} digits; at most {limit} can be delivered")
        self.take(fewest - 1)
        self.long_integers = True

    def digits(self, value):
        if value.bit_length() <= _SHORT_BITS:
            return int.__repr__(value)
        self.long_integer(value)
        with _AnyDigits():
            return int.__repr__(value)

    def text(self, value):
        """A str that is not ASCII: surrogates in pairs are joined, single ones are an error or U+FFFD."""
        try:
            self.take(len(value.encode("utf-8")) - len(value))
            return value
        except UnicodeEncodeError:
            pass
        units = value.encode("utf-16-le", "surrogatepass")
        try:
            return units.decode("utf-16-le")
        except ValueError:
            if self.options.surrogates == "replace":
                return units.decode("utf-16-le", "replace")
        raise LoneSurrogate(
            self.place(),
            "the text has half of a surrogate pair, which UTF-8 cannot express; "
            'encode it with errors="replace", or run with the option surrogates=replace',
        )

    # Everything that is not plain.

    def rich(self, value, kind):
        try:
            handler = _HANDLERS.get(kind)
            if handler is None:
                handler = _HANDLERS[kind] = _find_handler(kind)
            return handler(self, value)
        except (ResultError, RecursionError, MemoryError):
            raise
        except Exception as error:
            raise self.unreadable(value, error) from error

    def unreadable(self, value, error):
        return self.refuse(f"a value of type {type_words(type(value))} cannot be read: {error_words(error)}")

    def again(self, value, source):
        """What a library or a script made of `source`, looked at like any value."""
        key = self.enter(source)
        plain = self.value(value)
        self.open.discard(key)
        return plain

    def warnings(self):
        found = []
        if self.big is not None:
            others = f" (and {self.big_count - 1} more)" if self.big_count > 1 else ""
            found.append(
                {
                    "code": "big_integer",
                    "path": self.big,
                    "message": f"an integer past 2^53{others} is delivered with every digit; readers that keep numbers as doubles round it",
                }
            )
        for path, name in self.repeated[:10]:
            found.append(
                {
                    "code": "duplicate_column",
                    "path": path,
                    "message": f"the frame has more than one column {ascii(name[:KEY_SHOWN])}; the last one is delivered",
                }
            )
        return found


_SCALARS = frozenset({str, float, int})
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
# So many bits have fewer digits than the lowest limit that a script can set (640).
_SHORT_BITS = 2100


class _AnyDigits:
    """Lets int.__repr__ write any number of digits; their number has been checked before."""

    def __enter__(self):
        self.before = _get_digits()
        _set_digits(0)

    def __exit__(self, *_):
        _set_digits(self.before)


# --- Builtin types --------------------------------------------------------------------------------


def _str(run, value):
    return run.value(str.__str__(value))


def _int(run, value):
    return run.value(int.__int__(value))


def _float(run, value):
    return run.value(float.__float__(value))


def _bytes_text(data):
    return bytes.decode(data, "utf-8", "replace")


def _bytes(run, value):
    run.room(bytes.__len__(value))
    return run.value(_bytes_text(value))


def _bytearray(run, value):
    return run.value(_bytes_text(bytes(memoryview(value))))


def _memoryview(run, value):
    run.room(value.nbytes // value.itemsize)
    if value.ndim == 1 and value.format in ("B", "b", "c"):
        return run.value(_bytes_text(value.tobytes()))
    return run.again(value.tolist(), value)


def _list(run, value):
    return run.again(list(list.__iter__(value)), value)


def _tuple(run, value):
    fields = _namedtuple_fields(type(value))
    items = list(tuple.__iter__(value))
    if fields is None or len(fields) != len(items):
        return run.again(items, value)
    return _object(run, zip(fields, items), value)


def _namedtuple_fields(kind):
    for base in _mro_of(kind):
        fields = _dict_of(base).get("_fields")
        if type(fields) is tuple and all(type(name) is str for name in fields):
            return fields
    return None


def _object(run, pairs, source):
    key = run.enter(source)
    plain = run.keyed(pairs)
    run.open.discard(key)
    return plain


def _dict(run, value):
    return _object(run, list(dict.items(value)), value)


def _ordered_dict(run, value):
    # A dict's own order knows nothing of move_to_end.
    return _object(run, [(key, dict.__getitem__(value, key)) for key in OrderedDict.__iter__(value)], value)


def _mapping_proxy(run, value):
    return _object(run, list(value.items()), value)


def _deque(run, value):
    return run.again(list(deque.__iter__(value)), value)


def _range(run, value):
    try:
        run.room(2 * len(value))
    except OverflowError:
        raise run.too_large() from None
    return run.again(list(value), value)


def _view(run, value):
    return run.again(list(value), value)


def _set_of(base):
    def handler(run, value):
        return _sorted_set(run, list(base.__iter__(value)), value)

    return handler


def _sorted_set(run, items, source):
    try:
        items = sorted(items)
    except Exception:  # what has no order among itself gets that of its text
        return sorted(run.again(items, source), key=_any_text)
    return run.again(items, source)


def _any_text(plain):
    """A text to order by what has no order of its own; the same in every run."""
    return repr(type(plain)) + "".join(_encode(plain))


def _complex(run, value):
    raise run.refuse("a complex number has no JSON form; deliver its real and imag parts")


def _refuse_with(hint):
    def handler(run, value):
        raise run.refuse(f"a value of type {type_words(type(value))} has no JSON form; {hint}")

    return handler


_unknown = _refuse_with("make it a dict, a list, text or a number")
_one_shot = _refuse_with("it is used up by reading it: deliver list(...) of it")
_callable = _refuse_with("deliver what it returns: was a call forgotten?")
_class = _refuse_with("deliver an instance, or the name")
_module = _refuse_with("deliver a value that is in it")
_error = _refuse_with("deliver str(...) of it")
_awaitable = _refuse_with("deliver what awaiting it gives")

_VIEWS = [type(view()) for source in ({}, OrderedDict()) for view in (source.keys, source.values, source.items)]

# By the base type that a value really has.
_BASES = {
    str: _str,
    int: _int,
    float: _float,
    complex: _complex,
    bytes: _bytes,
    bytearray: _bytearray,
    memoryview: _memoryview,
    list: _list,
    tuple: _tuple,
    dict: _dict,
    OrderedDict: _ordered_dict,
    deque: _deque,
    set: _set_of(set),
    frozenset: _set_of(frozenset),
    range: _range,
    **{view: _view for view in _VIEWS},
    type(type.__dict__): _mapping_proxy,
    type: _class,
    type(sys): _module,
    BaseException: _error,
}

# What tells more about a value that is refused.
_HINTS = (("__next__", _one_shot), ("__await__", _awaitable), ("__anext__", _awaitable), ("__call__", _callable))


def _find_handler(kind):
    special = _special_handler(kind)
    if special is not None:
        return special
    for base in _mro_of(kind):
        library = _type_module(base).partition(".")[0]
        handler = _BASES.get(base) or _LIBRARY.get((library, str.__str__(_name_of(base))))
        if handler is not None:
            return handler
    return next((handler for name, handler in _HINTS if _has(kind, name)), _unknown)


def _special_handler(kind):
    enum = _modules.get("enum")
    if enum is not None and issubclass(kind, enum.Enum):
        return _enum
    return _dataclass if _has(kind, "__dataclass_fields__") else None


def _has(kind, name):
    return any(name in _dict_of(base) for base in _mro_of(kind))


# --- The standard library -------------------------------------------------------------------------


def _enum(run, value):
    return run.again(object.__getattribute__(value, "_value_"), value)


def _dataclass(run, value):
    names = [field.name for field in _modules["dataclasses"].fields(type(value))]
    return _object(run, [(name, getattr(value, name)) for name in names], value)


def _stdlib_text(module, name, method):
    """A handler for a class of the standard library by a method of that class itself."""

    def handler(run, value):
        return run.again(getattr(getattr(_modules[module], name), method)(value), value)

    return handler


def _decimal(run, value):
    base = _modules["decimal"].Decimal
    return run.value(base.__str__(value)) if base.is_finite(value) else None


def _array(run, value):
    return run.again(_modules["array"].array.tolist(value), value)


def _namespace(run, value):
    return _object(run, list(dict.items(object.__getattribute__(value, "__dict__"))), value)


# --- numpy ----------------------------------------------------------------------------------------


def _numpy_array(run, value):
    numpy = _modules["numpy"]
    array = numpy.ndarray.view(value, numpy.ndarray)
    run.room(2 * array.size)
    data = _array_data(run, array)
    if array.dtype.kind in "fb" or (array.dtype.kind in "iu" and _all_safe(array)):
        run.take(2 * array.size)
        return data
    return run.again(data, value)


def _all_safe(array):
    return array.dtype.itemsize < 8 or not array.size or (array.min() >= -SAFE_INTEGER and array.max() <= SAFE_INTEGER)


def _array_data(run, array):
    """An exact ndarray as nested lists of Python values, or one value for zero dimensions."""
    kind = array.dtype.kind
    if kind in "mM":
        return _nested(array, _moments(run, array.reshape(-1)))
    if kind == "f":
        return _float_data(array)
    if kind == "c":
        raise run.refuse(f"an array of complex numbers ({array.dtype}) has no JSON form; deliver its real and imag parts")
    if kind == "V":
        return _nested(array, _void_values(run, array.reshape(-1)))
    return array.tolist()


def _float_data(array):
    numpy = _modules["numpy"]
    if array.dtype.itemsize > 8:
        array = array.astype(numpy.float64)
    finite = numpy.isfinite(array)
    if finite.all():
        return array.tolist()
    if not array.ndim:
        return None
    array = array.astype(object)
    array[~finite] = None
    return array.tolist()


def _nested(array, values):
    """Values in the order of the array's elements, in lists of its shape."""
    for length in reversed(array.shape[1:]):
        if length:
            values = [values[start : start + length] for start in range(0, len(values), length)]
        else:
            values = [[] for _ in range(array.shape[0])]
    return values if array.ndim else values[0]


def _void_values(run, flat):
    names = flat.dtype.names
    if names is None:
        return [_bytes_text(item.tobytes()) for item in flat]
    columns = [_array_data(run, flat[name]) for name in names]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(len(flat))]


def _moments(run, flat):
    """Elements of a flat datetime64 or timedelta64 array: ISO text, seconds, None for NaT."""
    numpy = _modules["numpy"]
    missing = numpy.isnat(flat)
    if flat.dtype.kind == "M":
        unit = numpy.datetime_data(flat.dtype)[0]
        if unit == "generic":
            return [None] * len(flat)
        values = [_iso(text, unit) for text in numpy.datetime_as_string(flat).tolist()]
    else:
        values = _seconds(run, flat, missing)
    if missing.any():
        values = [None if absent else value for value, absent in zip(values, missing.tolist())]
    return values


def _seconds(run, flat, missing):
    numpy = _modules["numpy"]
    unit, count = numpy.datetime_data(flat.dtype)
    if unit in ("Y", "M", "generic"):
        if missing.all():
            return [None] * len(flat)
        what = "years and months have no length in seconds" if unit != "generic" else "it has no unit"
        raise run.refuse(f"a {flat.dtype} cannot be given in seconds: {what}")
    factor, divisor = _SECONDS[unit]
    return [number * count * factor / divisor for number in flat.astype(numpy.int64).tolist()]


# unit: (factor, divisor) to seconds
_SECONDS = {
    "W": (604800, 1),
    "D": (86400, 1),
    "h": (3600, 1),
    "m": (60, 1),
    "s": (1, 1),
    "ms": (1, 10**3),
    "us": (1, 10**6),
    "ns": (1, 10**9),
    "ps": (1, 10**12),
    "fs": (1, 10**15),
    "as": (1, 10**18),
}


def _iso(text, unit):
    """numpy's text of a moment, in the form of datetime.isoformat: seconds always, a fraction of six
    or nine digits (or all of them, below nanoseconds) where it is not zero."""
    if unit in ("Y", "M", "W", "D"):
        return text
    if unit == "h":
        return text + ":00:00"
    if unit == "m":
        return text + ":00"
    moment, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    if not fraction:
        return moment
    width = 6 if len(fraction) <= 6 else 9 if len(fraction) <= 9 else len(fraction)
    return f"{moment}.{fraction.ljust(width, '0')}"


def _numpy_masked(run, value):
    numpy = _modules["numpy"]
    run.room(2 * value.size)
    if value.dtype.names is not None:
        return run.again(value.tolist(), value)
    array = numpy.ndarray.view(value.data, numpy.ndarray)
    hidden = _modules["numpy.ma"].getmaskarray(value).reshape(-1).tolist()
    items = [None if masked else item for item, masked in zip(_array_data(run, array.reshape(-1)), hidden)]
    return run.again(_nested(array, items), value)


def _numpy_scalar(run, value):
    return run.again(_modules["numpy"].generic.item(value), value)


def _numpy_floating(run, value):
    return run.value(float(_modules["numpy"].generic.astype(value, "f8")))


def _numpy_moment(run, value):
    numpy = _modules["numpy"]
    return run.value(_moments(run, numpy.generic.reshape(value, (1,)))[0])


def _numpy_text(run, value):
    return run.value(str.__str__(value))


def _numpy_void(run, value):
    numpy = _modules["numpy"]
    return run.again(_void_values(run, numpy.generic.reshape(value, (1,)))[0], value)


def _as_text(run, value):
    text = str(value)
    if not issubclass(type(text), str):
        raise run.refuse(f"a value of type {type_words(type(value))} has no text")
    return run.value(str.__str__(text))


# --- pandas and what builds on it -----------------------------------------------------------------


def _null(run, value):
    return None


def _isoformat(run, value):
    return run.again(value.isoformat(), value)


def _total_seconds(run, value):
    return run.again(value.total_seconds(), value)


def _index(run, value):
    run.room(2 * len(value))
    return run.again(list(value), value)


def _series(run, value):
    run.room(2 * len(value))
    return run.again(_column(run, value.array), value)


def _extension_array(run, value):
    run.room(2 * len(value))
    return run.again(_column(run, value), value)


def _column(run, array):
    """The items of an array of pandas: plain where a whole column can be made plain at once."""
    numpy = _modules["numpy"]
    if any(str.__str__(_name_of(base)) == "NumpyExtensionArray" for base in _mro_of(type(array))):
        array = array.to_numpy()
    dtype = array.dtype
    if issubclass(type(dtype), numpy.dtype):
        array = numpy.ndarray.view(numpy.asarray(array), numpy.ndarray).reshape(-1)
        return _array_data(run, array)
    return list(array)


def _frame(run, frame):
    key = run.enter(frame)
    count = len(frame)
    run.take(2 * count or 1)
    columns = {}
    for position, label in enumerate(list(frame.columns)):
        name = run.key(label)
        if name in columns:
            run.repeated.append((run.place(), name))
        columns[name] = position
    run.take(count * (sum(map(len, columns)) + 5 * len(columns) or 1))
    cells = [_cells(run, name, _column(run, frame.iloc[:, position].array)) for name, position in columns.items()]
    if any(len(column) != count for column in cells):
        raise run.refuse(f"the frame says that it has {count} rows, and a column has not")
    run.open.discard(key)
    return _Records(tuple(columns), cells, count)


def _cells(run, name, cells):
    """A column whose cells are plain; errors name row and column."""
    if cells and run.uniform(cells):
        return cells
    out = []
    path = run.path
    for row, cell in enumerate(cells):
        kind = type(cell)
        if kind is not float or not -LARGEST_FLOAT <= cell <= LARGEST_FLOAT:
            path.append(row)
            path.append(name)
            cell = run.value(cell)
            path.pop()
            path.pop()
        out.append(cell)
    return out


# --- Other libraries ------------------------------------------------------------------------------


def _xarray(run, value):
    # Not lists: to_dict would lose the units of moments.
    return run.again(value.to_dict(data="array"), value)


def _xarray_tree(run, value):
    return run.again(value.to_dict(), value)


def _graph(run, graph):
    directed, multigraph = bool(graph.is_directed()), bool(graph.is_multigraph())
    nodes = [{**attributes, "id": node} for node, attributes in graph.nodes(data=True)]
    if multigraph:
        edges = [{**kept, "source": a, "target": b, "key": key} for a, b, key, kept in graph.edges(keys=True, data=True)]
    else:
        edges = [{**kept, "source": a, "target": b} for a, b, kept in graph.edges(data=True)]
    form = {"directed": directed, "multigraph": multigraph, "graph": graph.graph, "nodes": nodes, "edges": edges}
    return run.again(form, graph)


def _listed(run, value):
    return run.again(list(value), value)


def _mapped(run, value):
    return run.again(dict(value.items()), value)


def _geometry(run, value):
    if run.options.geometry == "wkt":
        return run.again(value.wkt, value)
    form = value.__geo_interface__
    if form.get("type") == "LinearRing":  # which GeoJSON does not know
        form = {**form, "type": "LineString"}
    return run.again(form, value)


def _quantity(run, value):
    magnitude = value.magnitude
    if type(magnitude) in (int, float) or getattr(magnitude, "ndim", 1) == 0 or not hasattr(magnitude, "__len__"):
        return _as_text(run, value)
    raise run.refuse("a quantity of many values has no JSON form; deliver its .magnitude and str(.units)")


def _astropy_quantity(run, value):
    return run.again(value.value, value)


def _astropy_time(run, value):
    return run.again(value.isot, value)


def _sympy(run, value):
    if value.is_Integer:
        return run.again(int(value), value)
    if value.is_Float:
        return run.again(float(value), value)
    if value.is_number and value.is_finite is False or value is _modules["sympy"].nan:
        return None
    if value is _modules["sympy"].true or value is _modules["sympy"].false:
        return bool(value)
    return _as_text(run, value)


def _tolist(run, value):
    return run.again(value.tolist(), value)


# By the library and the name of a base class. A class of a script that claims such a name is read by
# the same methods, and what they return is looked at as well.
_LIBRARY = {
    ("datetime", "datetime"): _stdlib_text("datetime", "datetime", "isoformat"),
    ("datetime", "date"): _stdlib_text("datetime", "date", "isoformat"),
    ("datetime", "time"): _stdlib_text("datetime", "time", "isoformat"),
    ("datetime", "timedelta"): _stdlib_text("datetime", "timedelta", "total_seconds"),
    ("decimal", "Decimal"): _decimal,
    ("fractions", "Fraction"): _stdlib_text("fractions", "Fraction", "__str__"),
    ("uuid", "UUID"): _stdlib_text("uuid", "UUID", "__str__"),
    ("pathlib", "PurePath"): _stdlib_text("pathlib", "PurePath", "__str__"),
    ("array", "array"): _array,
    ("types", "SimpleNamespace"): _namespace,
    ("collections", "UserDict"): _mapped,
    ("collections", "ChainMap"): _mapped,
    ("collections", "UserList"): _listed,
    ("collections", "UserString"): _as_text,
    ("functools", "partial"): _callable,
    ("numpy", "ndarray"): _numpy_array,
    ("numpy", "MaskedArray"): _numpy_masked,
    ("numpy", "MaskedConstant"): _null,
    ("numpy", "datetime64"): _numpy_moment,
    ("numpy", "timedelta64"): _numpy_moment,
    ("numpy", "floating"): _numpy_floating,
    ("numpy", "complexfloating"): _complex,
    ("numpy", "str_"): _numpy_text,
    ("numpy", "void"): _numpy_void,
    ("numpy", "generic"): _numpy_scalar,
    ("numpy", "dtype"): _as_text,
    ("numpy", "ufunc"): _callable,
    ("pandas", "NaTType"): _null,
    ("pandas", "NAType"): _null,
    ("pandas", "Timestamp"): _isoformat,
    ("pandas", "Timedelta"): _total_seconds,
    ("pandas", "Period"): _as_text,
    ("pandas", "Interval"): _as_text,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): _index,
    ("pandas", "ExtensionArray"): _extension_array,
    ("pandas", "ExtensionDtype"): _as_text,
    ("pandas", "BaseGroupBy"): _refuse_with("aggregate the groups first"),
    ("xarray", "DataArray"): _xarray,
    ("xarray", "Dataset"): _xarray,
    ("xarray", "Variable"): _xarray,
    ("xarray", "DataTree"): _xarray_tree,
    ("networkx", "Graph"): _graph,
    ("networkx", "NodeView"): _listed,
    ("networkx", "NodeDataView"): _listed,
    ("networkx", "OutEdgeView"): _listed,
    ("networkx", "OutEdgeDataView"): _listed,
    ("networkx", "DiDegreeView"): _listed,
    ("networkx", "AtlasView"): _mapped,
    ("shapely", "Geometry"): _geometry,
    ("shapely", "CoordinateSequence"): _listed,
    ("pyproj", "CRS"): _as_text,
    ("sympy", "Basic"): _sympy,
    ("sympy", "MatrixBase"): _tolist,
    ("sympy", "NDimArray"): _tolist,
    ("pint", "PlainQuantity"): _quantity,
    ("pint", "PlainUnit"): _as_text,
    ("cftime", "datetime"): _isoformat,
    ("astropy", "Quantity"): _astropy_quantity,
    ("astropy", "UnitBase"): _as_text,
    ("astropy", "Time"): _astropy_time,
    ("astropy", "Table"): _refuse_with("deliver .to_pandas()"),
    ("scipy", "_spbase"): _refuse_with("deliver .toarray()"),
}

_HANDLERS = {}  # by exact type, filled as types are met


# --- Text -----------------------------------------------------------------------------------------


def _expand(value):
    """Called by the encoder for what it does not know: frames within other values."""
    if type(value) is _Records:
        return value.rows(0, value.count)
    raise UnserializableValue("$", f"a value of type {type_words(type(value))} came in while the result was being read")


# Markers against circles are not needed: the pass has found none.
_encode_at = make_encoder(None, _expand, encode_basestring, None, ":", ",", False, False, False)


def _encode(plain):
    return _encode_at(plain, 0)


class Prepared:
    """A value that can be delivered. Holds parts of the value itself: use it before the script goes on."""

    __slots__ = ("_least", "_long", "_options", "_plain", "warnings")

    def __init__(self, plain, run):
        self._plain = plain
        self._options = run.options
        self._least = run.options.max_bytes - run.left + 1  # bytes, about
        self._long = run.long_integers
        self.warnings = run.warnings()

    @property
    def is_list(self):
        return type(self._plain) in (list, tuple, _Records)

    def text(self):
        return self._text_of(self._plain)

    def pieces(self):
        """The text, or, for a list, arrays of about `piece_bytes` that make up the list together.
        At least one; no piece holds more than one item if that item is longer."""
        if not self.is_list:
            yield self.text()
            return
        size = self._size()
        # Text is about half as long again as its lower bound.
        start, step, total = 0, max(1, size * self._options.piece_bytes * 2 // (3 * self._least)), 0
        piece = b"[]"
        while start < size:
            stop = min(start + step, size)
            piece = self._text_of(self._slice(start, stop))
            count, fits = stop - start, self._options.piece_bytes * (stop - start) // len(piece)
            if count > 1 and 2 * fits < count:  # the next items are longer
                step = max(1, fits)
                continue
            step = max(1, min(4 * count, fits))
            start = stop
            total += len(piece)
            self._check_size(total)
            if start < size:
                yield piece
        yield piece

    def _size(self):
        return self._plain.count if type(self._plain) is _Records else len(self._plain)

    def _check_size(self, size):
        if size > self._options.max_bytes:
            raise ValueTooLarge("$", f"the value has more than {self._options.max_bytes} bytes of JSON")

    def chunks(self):
        """The text in chunks: those of a list are joined by their commas."""
        opening = b"["
        if not self.is_list:
            yield self.text()
            return
        for piece in self.pieces():
            if piece != b"[]":
                yield opening + piece[1:-1]
                opening = b","
        yield b"]" if opening == b"," else b"[]"

    def _slice(self, start, stop):
        if type(self._plain) is _Records:
            return self._plain.rows(start, stop)
        return self._plain[start:stop]

    def _text_of(self, plain):
        if type(plain) is _Records:
            plain = plain.rows(0, plain.count)
        try:
            if self._long:
                with _AnyDigits():
                    text = "".join(_encode(plain))
            else:
                text = "".join(_encode(plain))
            data = text.encode("utf-8")
        except (TypeError, ValueError, KeyError) as error:
            if isinstance(error, ResultError):
                raise
            raise UnserializableValue("$", f"the value changed while it was being read: {error_words(error)}") from None
        self._check_size(len(data))
        return data


def prepare(value, options=DEFAULT_OPTIONS):
    run = _Pass(options)
    try:
        plain = run.value(value)
        run.take(0)
        return Prepared(plain, run)
    except (ResultError, MemoryError):
        raise
    except RecursionError:
        raise ValueTooDeep(run.place(), "the value is nested too deeply for what the script has left of its stack") from None
    except Exception as error:  # from a type that is hostile even in its hash
        raise run.refuse(f"the value cannot be read: {error_words(error)}") from error


def dumps(value, options=DEFAULT_OPTIONS):
    """The JSON text of `value` as a str."""
    return prepare(value, options).text().decode("utf-8")
