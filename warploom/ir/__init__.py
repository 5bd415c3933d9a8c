"""The intermediate representation: SSA values in nested blocks, three stages. Knows no pass and no
device."""
