"""The form of the matrix product in which blocks share tiles along K."""
