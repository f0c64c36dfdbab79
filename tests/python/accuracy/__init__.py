"""Measures how accurate the functions of refcpu and of XLA's CPU backend are. `cargo xtask accuracy` runs it."""
