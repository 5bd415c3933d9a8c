"""What a user would pick instead, one module a rival. Only here does `bench` know torch."""
