"""Mutation: one synchronisation of a kernel altered at a time, to see whether the checker notices.

Works on machine IR, the one that the simulator runs: no front end takes part.
"""
