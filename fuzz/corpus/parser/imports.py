import a, b.c as d
from . import e
from ...f.g import (h as i, j,)
from k import *
