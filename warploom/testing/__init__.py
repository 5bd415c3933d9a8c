"""What a project needs to test kernels: a pytest plug-in, goldens, one fixture for both devices.

Nothing here is imported by a kernel or by the engine.
"""
