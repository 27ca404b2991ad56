[x for x in y if z if w]
{x for a in b for c in d}
{k: v for k, v in i.items()}
(await x async for x in y)
f(x for x in y)
{**a, 'b': 1}, {*a, b}, [*a], (*a,), ()
