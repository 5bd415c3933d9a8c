"""The vocabulary of kernels: real functions that the front end calls while it builds a kernel.

They see symbolic operands, check them, and append operations. Knows no syntax and no device.
"""
