match x, y:
    case [1, *_] | (2 as z): pass
    case {'a': b, c.d: -1, **rest} if rest: pass
    case A(1, b=None) | True: pass
    case 1+2j: pass
    case _: pass
match = case = type = 1
