"""The phases of the token kernel in the kernel language: a module a subject."""
