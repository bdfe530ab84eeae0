"""Rows of a Parquet file, some columns only. Bounded: a small file may unpack to very much.

Texts are read as indices into the dictionary that the file holds, so that one long text that stands in a million rows takes its room once; how much
the rows are together is reckoned before they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import ReadError
from .packed import MAX_TOTAL

#: Bytes, unpacked, of the columns that are read, and values in one of them.
_MAX_VALUES = 1 << 27
_BATCH = 256


class ParquetRows:
    """A Parquet file, open for reading.

    Raises
    ------
    ReadError
        It is damaged, or pyarrow is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ReadError(f"{self.name} is a Parquet file, which pyarrow reads: install it (pip install pyarrow)") from None
        self._errors = (pyarrow.ArrowException, OSError, ValueError, OverflowError, KeyError, IndexError)
        self._path = path
        self._open = pyarrow.parquet.ParquetFile
        try:
            self._file = self._open(path)
            schema = self._file.schema
            self._leaves = [(schema.column(at).path, str(schema.column(at).physical_type)) for at in range(len(schema))]
            self.columns: tuple[str, ...] = tuple(self._file.schema_arrow.names)
            self.rows: int = self._file.metadata.num_rows
        except self._errors:
            raise ReadError(f"{self.name} is a Parquet file that is damaged or not finished; copy or export it again") from None

    def __enter__(self) -> ParquetRows:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The rows, with these columns; fields that are null are left out, for a column gives every row the fields of all others.

        Raises
        ------
        ReadError
            It is damaged, or larger than any transcript.
        """
        leaves = [(path, kind) for path, kind in self._leaves if path.split(".", 1)[0] in columns]
        left = MAX_TOTAL
        try:
            self._bound({path for path, _ in leaves})
            texts = [path for path, kind in leaves if kind == "BYTE_ARRAY"]
            with self._open(self._path, read_dictionary=texts) as file:
                for group in range(self._file.metadata.num_row_groups):  # each has dictionaries of its own, which nested columns cannot mix
                    for batch in file.iter_batches(batch_size=_BATCH, row_groups=[group], columns=[path for path, _ in leaves]):
                        left -= sum(_size(column) for column in batch.columns)
                        if left < 0:
                            raise self._too_large()
                        for row in batch.to_pylist():
                            yield _pruned(row)
        except ReadError:
            raise
        except self._errors as error:
            raise ReadError(f"{self.name} is a Parquet file that is damaged ({type(error).__name__}); copy or export it again") from None

    def _bound(self, paths: set[str]) -> None:
        about = self._file.metadata
        size = 0
        for group in range(about.num_row_groups):
            held = about.row_group(group)
            for at in range(held.num_columns):
                column = held.column(at)
                if column.path_in_schema in paths:
                    size += column.total_uncompressed_size
                    if column.num_values > _MAX_VALUES or size > MAX_TOTAL:
                        raise self._too_large()

    def _too_large(self) -> ReadError:
        return ReadError(f"{self.name}: unpacked it is larger than any transcript ({MAX_TOTAL:,} bytes and more); give a part of it")


def _size(array: Any) -> int:
    """Bytes of an array's values once they are Python's: of texts in a dictionary, each as often as it is named."""
    import pyarrow
    import pyarrow.compute as compute

    kind = array.type
    if pyarrow.types.is_dictionary(kind):
        lengths = compute.binary_length(array.dictionary)
        total = compute.sum(compute.cast(lengths.take(array.indices), pyarrow.int64())).as_py() if len(array.dictionary) else 0
        return int(total or 0) + 8 * len(array)
    if pyarrow.types.is_struct(kind):
        return 8 * len(array) + sum(_size(field) for field in array.flatten())
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_map(kind):
        return 8 * len(array) + _size(array.flatten() if not pyarrow.types.is_map(kind) else array.items)
    return int(array.nbytes) + 8 * len(array)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value
