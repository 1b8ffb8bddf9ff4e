"""Servers around peers that are libraries. They run in the peers' own environments."""
