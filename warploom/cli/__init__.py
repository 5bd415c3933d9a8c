"""The command line: one module a verb, and a table that loads only the verb in use."""
