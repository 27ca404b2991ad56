match a:
    case 1: pass
    case -1 | 1.5 | -2j | 1 + 2j | -1 - 2.5j: pass
    case 'a' | b'b' | 'c' "d" | f'{e}': pass
    case None | True | False: pass
    case x: pass
    case _: pass
    case x.y | x.y.z: pass
    case (x) | ((y)): pass
    case (): pass
    case []: pass
    case (x,) | [y] | [y,]: pass
    case x, y: pass
    case x,: pass
    case x, *_, y: pass
    case *x, y: pass
    case [*_] | (*x,): pass
    case {}: pass
    case {'a': 1, -1: x, x.y: z, None: _, 1 + 2j: w}: pass
    case {'a': 1, **rest}: pass
    case {**rest,}: pass
    case A() | a.B(): pass
    case A(1, x, y=2, z=_): pass
    case A(x,) | A(y=1,): pass
    case (1 | 2) as x: pass
    case [1 as a, (2 | 3) as b] as c: pass
    case x if x > 1: pass
    case x if (y := x): pass
    case match | case | type: pass
match a, b:
    case 1, 2: pass
match *a, b:
    case _: pass
match (a, b):
    case _: pass
match a,:
    case _:
        pass
match -a:
    case _: pass
match [a]:
    case _: pass
match {a: b}:
    case _: pass
match match:
    case case: pass
match(a):
    case (b): pass
match not a:
    case _: pass
match lambda: 0:
    case _: pass
match (yield):
    case _: pass
match a := b:
    case _: pass
match a if b else c:
    case _: pass
match 'a':
    case _: pass
match f'{a}':
    case _: pass
match (a)(b):
    case _: pass
match
match: int
match (a)
match [a]
match -a
match * a
