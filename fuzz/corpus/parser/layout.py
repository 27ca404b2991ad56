# -*- coding: utf-8 -*-
if 1:
	x = (1 +

  2)  # comment

	y = 1 + \
 2; z = 3

class A: pass
while x: y
