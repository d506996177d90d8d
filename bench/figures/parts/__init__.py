"""What is measured, one part a module: measure(setup) returns parameters, runs and summary."""
