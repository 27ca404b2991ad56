#!/usr/bin/env python3
# -*- coding: latin-1 -*-
x = "é"; yé = 1
