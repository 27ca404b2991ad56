x = a + b * -c ** 2 // (d - e) @ f % ~g << 1 >> 2 & 3 | 4 ^ 5
y = a < b <= c != d is not e not in f
z = not a and b or c if d else e
x += 1; y @= 2; z **= 3
