if a:
    pass
elif (b := c):
    pass
else:
    del d, e[0]
for x, *y in z:
    break
else:
    continue
while 1: assert a, b
try:
    raise A from b
except (C, D) as e:
    ...
else:
    x
finally:
    y
try: a
except* B: c
with (a as b, c as (d, e)):
    pass
async def f():
    async with a: pass
    async for b in c: pass
