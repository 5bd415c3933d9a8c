"""Passes from the tile stage to the machine stage. Knows no device."""
