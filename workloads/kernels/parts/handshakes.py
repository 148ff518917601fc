def collective_cycles(*a): return 0
