"""The kinds of views beside those of one program: unions, orders, windows, ranges, rings, closures."""
