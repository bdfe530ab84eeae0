"""Faithful ports of four context managers, each on its own message model, written to be read.

They know nothing of the canonical transcript: `workbench.policies` puts them to work on one.
"""
