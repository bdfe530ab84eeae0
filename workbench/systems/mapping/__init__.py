"""A canonical transcript as each of the four systems would hold it. One file per system; the rules that they share are in `common`.

These are conventions of the workbench, labelled so: the originals do not say. Rules: four_systems.md, "As policies on a
canonical transcript".
"""
