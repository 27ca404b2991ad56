if a:
	b
	if c:
		d
		e
	f

if g:
   h
i
   
j  = 1
if k:\
    l
m = \
  1
  # note
	
if n:
  \
  o
\
p