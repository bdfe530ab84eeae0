"""Golden vectors: outputs of the original programs. ``python -m tests.golden FILE…`` tries every case of the files."""
