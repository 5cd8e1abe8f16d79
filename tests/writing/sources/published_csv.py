"""CSV files: those that csv-spectrum describes, the rules of RFC 4180, and files as programs write them."""

from __future__ import annotations

# What Python's `csv` reads, each with its name.
SPECTRUM = {
    "comma_in_quotes": b'first,address,city,zip\nJohn,12 any st.,"Anytown, WW",08123',
    "empty": b'a,b,c\n1,"",""\n2,3,4',
    "empty_crlf": b'a,b,c\r\n1,"",""\r\n2,3,4',
    "escaped_quotes": b'a,b\n1,"ha ""ha"" ha"\n3,4\n',
    "json": b'key,val\n1,"{""type"": ""Point"", ""coordinates"": [102.0, 0.5]}"\n',
    "location_coordinates": "phone,place\n2095257564,37\N{DEGREE SIGN}36'37.8\"N 121\N{DEGREE SIGN}2'17.9\"W".encode(),
    "newlines": b'a,b,c\n1,2,3\n"Once upon \na time",5,6\n7,8,9\n',
    "newlines_cr": b"a,b\r1,x\r2,y\r",
    "newlines_crlf": b'a,b,c\r\n1,2,3\r\n"Once upon \r\na time",5,6\r\n7,8,9\r\n',
    "quotes_and_newlines": b'a,b\n1,"ha \n""ha"" \nha"\n3,4\n',
    "simple": b"a,b,c\n1,2,3\n",
    "simple_crlf": b"a,b,c\r\n1,2,3\r\n",
    "utf8": "a,b,c\n1,2,3\n4,5,\u02a4\n".encode(),
}
RFC_4180 = {
    "records_end_in_crlf": b"a,b\r\n1,x\r\n2,y\r\n",
    "no_last_break": b"a,b\r\n1,x",
    "no_last_break_quoted": b'a,b\n1,"x"',
    "no_last_break_empty": b"a,b\n1,x\n2,",
    "last_cell_quoted_empty": b'a,b\n1,""',
    "spaces_are_part_of_a_cell": b"a,b\n 1 , x y \n",
    "all_quoted": b'"a","b"\r\n"1","x"\r\n',
    "quote_doubled": b'a,b\n1,"say ""hi"""\n',
    "quote_alone": b'a,b\n1,""""\n',
    "comma_quoted": b'a,b\n1,"x,y"\n',
    "lf_quoted": b'a,b\n1,"x\ny"\n2,z\n',
    "crlf_quoted": b'a,b\r\n1,"x\r\ny"\r\n',
    "cr_quoted": b'a,b\n1,"x\ry"\n',
    "name_with_break": b'"a\nb",c\n1,2\n',
    "name_with_comma": b'"a,b",c\n1,2\n',
    "name_with_quotes": b'"a ""b""",c\n1,2\n',
}
FOUND = {
    "mixed_ends": b"a,b\r\n1,x\n2,y\r3,z\n",
    "bom": b"\xef\xbb\xbfa,b\n1,x\n",
    "bom_quoted": b'\xef\xbb\xbf"a",b\n1,x\n',
    "nul": b"a,b\n1,x\0y\n",
    "blank_between": b"a,b\n1,x\n\n2,y\n",
    "blank_at_the_end": b"a,b\n1,x\n\n\n",
    "quoted_empty_of_one_column": b'a\nx\n""\nz\n',
    "only_commas": b"a,b\n,\n1,2\n",
    "names_by_case": b"a,A\n1,2\n",
    "unnamed_index": b",a\n0,x\n1,y\n",
    "unnamed_columns": b",a,\n0,x,\n",
    "comma_at_the_end_of_all": b"a,b,\n1,2,\n3,4,\n",
    "quote_within": b'a,b\n1,x"y"z\n',
    "quote_after_a_space": b'a,b\n1, "x"\n',
    "backslash_is_text": b"a,b\n1,x\\ny\n",
    "numbers": b"a,b,c\n1,-2.5,1e3\n4,.5,-0\n",
    "leading_zeros": b"a\n007\n010\n",
    "plus": b"a\n+4\n+5\n",
    "beyond_int64": b"a\n9223372036854775808\n1\n",
    "nan": b"a\nnan\n1.5\n",
    "infinity": b"a\ninf\n-inf\n",
    "hexadecimal": b"a\n0x10\n0x11\n",
    "underscores": b"a\n1_000\n2\n",
    "bools": b"a\ntrue\nFALSE\n",
    "yes_and_no": b"a\nyes\nno\n",
    "dates": b"a\n2026-01-31\n2026-02-01\n",
    "times": b"a\n2026-01-31T10:00:00\n2026-01-31T10:00:01\n",
    "no_break_space": "a,b\n1,x\u00a0y\n".encode(),
    "line_separator": "a,b\n1,x\u2028y\n".encode(),
    "vertical_tab": b"a,b\n1,x\vy\n",
    "form_feed": b"a,b\n1,\f\n",
    "cr_cr_lf": b"a,b\r\r\n1,x\r\r\n",
    "names_are_digits": b"1,2\n3,4\n",
    "name_with_dot": b"a.b,a\n1,2\n",
    "name_with_slash": b"a/b\n1\n",
    "long_cell": b"a,b\n1," + b"x" * 100_000 + b"\n",
    "wide": b",".join(b"c%d" % i for i in range(300))
    + b"\n"
    + b",".join(b"%d" % i for i in range(300))
    + b"\n",
    "emoji": "a,b\n1,\N{GRINNING FACE}\n".encode(),
}
# What Python's `csv` reads with options that `infer` proposes: the options; or the rows, where cells are written in
# another way than Python reads numbers.
WITH_OPTIONS = {
    "latin1": ("a,b\n1,é\n".encode("latin-1"), {"encoding": "windows-1252"}),
    "utf16": ("a,b\n1,é\n".encode("utf-16"), {"encoding": "utf-16"}),
    "tabs": (b"a\tb\n1\tx\n", {"delimiter": "\t"}),
    "semicolons": (b"a;b\n1;x\n", {"delimiter": ";"}),
    "pipes": (b"a|b\n1|x\n", {"delimiter": "|"}),
}
IN_ANOTHER_NOTATION = {
    "decimal_comma": (b"a;b\n1,5;x\n2,25;y\n", [{"a": 1.5, "b": "x"}, {"a": 2.25, "b": "y"}]),
    "percent": (b"a\n50 %\n25 %\n", [{"a": 0.5}, {"a": 0.25}]),
    "thousands": (b'a\n"1,234.5"\n"2,000.0"\n', [{"a": 1234.5}, {"a": 2000.0}]),
    "comment_before": (b"# a comment\na,b\n1,2\n", [{"a": 1, "b": 2}]),
    "delimiter_for_excel": (b"sep=;\na;b\n1;2\n", [{"a": 1, "b": 2}]),
    "names_twice": (b"a,a\n1,2\n", [{"a": 1, "a_2": 2}]),
    "space_before_a_name": (b"a, b\n1, 2\n", [{"a": 1, "b": 2}]),
    "no_header": (
        b"5.1,x\n4.9,x\n4.7,y\n4.6,y\n",
        [
            {"column_1": 5.1, "column_2": "x"},
            {"column_1": 4.9, "column_2": "x"},
            {"column_1": 4.7, "column_2": "y"},
            {"column_1": 4.6, "column_2": "y"},
        ],
    ),
    "lines_before_the_header": (
        b"Report 2026\n\na,b,c\n1,2,3\n4,5,6\n",
        [{"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 5, "c": 6}],
    ),
    "quotes_are_text": (b'a\tb\n1\t"x\n2\ty\n', [{"a": 1, "b": '"x'}, {"a": 2, "b": "y"}]),
    "columns_of_spaces": (
        b"a   b\n1   2\n 3  4\n 5 60\n",
        [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 60}],
    ),
    "null": (b"a,b\nnull,\\N\n1,x\n", [{"a": None, "b": "\\N"}, {"a": 1, "b": "x"}]),
    "words_for_missing": (b"a,b\n1,NA\nNA,x\n", [{"a": 1, "b": "NA"}, {"a": None, "b": "x"}]),
    "blank_of_one_column": (b"a\n1\n\n3\n", [{"a": 1}, {"a": None}, {"a": 3}]),
    "blank_of_one_column_of_texts": (b"a\nx\n\nz\n", [{"a": "x"}, {"a": None}, {"a": "z"}]),
}

_HEADER = ":1: expected a header with the names of the columns, got "
_CELLS = "expected {} in the header, got {}"
_QUOTED = 'expected a delimiter or a line break after a quoted cell, got `{}` (a quote in a quoted cell is doubled, `""`; if the file does not quote cells, `quote: null`)'
_UNCLOSED = (
    "expected quotes in pairs, got one that is never closed (if the file does not quote cells, `quote: null`)"
)
_EMPTY = "always empty, in 2 rows: its type is unknown, so it is left out"
REFUSED = {
    "short_row": (b"a,b,c\n1,2,3\n4,5\n", ":3: expected 3 cells, as in the header, got 2: `4,5`"),
    "long_row": (b"a,b\n1,2\n3,4,5\n", ":3: expected 2 cells, as in the header, got 3: `3,4,5`"),
    "short_last_row": (b"a,b\n1,2\n3", ":3: expected 2 cells, as in the header, got 1: `3`"),
    "comma_at_the_end_of_rows": (b"a,b\n1,2,\n3,4,\n", ":2: expected 2 cells, as in the header, got 3: `1,2,`"),
    "line_of_spaces": (b"a,b\n1,x\n  \n2,y\n", ":3: expected 2 cells, as in the header, got 1: `  `"),
    "single_quotes": (b"a,b\n1,'x,y'\n", ":2: expected 2 cells, as in the header, got 3: `1,'x,y'`"),
    "comment_between": (b"a,b\n# one\n1,2\n", ":2: expected 2 cells, as in the header, got 1: `# one`"),
    "title_before": (b"Report 2026\n\na,b\n1,2\n", ":3: expected 1 cell, as in the header, got 2: `a,b`"),
    "end_of_file_of_dos": (b"a,b\n1,x\n\x1a", ":3: expected 2 cells, as in the header, got 1: `\\x1a`"),
    "blank_before": (b"\na,b\n1,x\n", f"{_HEADER}an empty line"),
    "empty_file": (b"", f"{_HEADER}an empty file"),
    "only_a_break": (b"\n", f"{_HEADER}an empty line"),
    "only_a_bom": (b"\xef\xbb\xbf", f"{_HEADER}an empty file"),
    "only_a_header": (b"a,b\n", ": expected a column with values, got none"),
    "only_a_header_no_break": (b"a,b", ": expected a column with values, got none"),
    "all_empty": (b"a,b\n,\n,\n", f": expected a column with values, got none (a: {_EMPTY}; b: {_EMPTY})"),
    "text_after_a_quote": (b'a,b\n1,"x"y\n', ":2: " + _QUOTED.format('1,"x"y')),
    "backslash_before_a_quote": (b'a,b\n1,"x\\"y"\n', ":2: " + _QUOTED.format('1,"x\\"y')),
    "unclosed_quote": (b'a,b\n1,"x\n2,y\n', f":2: {_UNCLOSED}"),
    "text_after_a_quote_in_the_header": (b'"a"b,c\n1,2\n', ":1: " + _QUOTED.format('"a"b,c')),
    "unclosed_quote_in_the_header": (b'"a,b\n1,2\n', f":1: {_UNCLOSED}"),
    "neither_utf8_nor_windows": (b"a,b\n1,\xff\xfe\x81\n", ":2: expected UTF-8 text, got the byte 0xff (`encoding` of the source names another, such as windows-1252 or utf-16)"),
}  # fmt: skip
