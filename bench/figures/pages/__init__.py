"""What the pages say, made from bench/results: one page or one kind of text a module."""
