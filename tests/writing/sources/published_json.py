r"""Texts of JSON, after RFC 8259 and the descriptions of the JSONTestSuite: valid ones, invalid ones, and those of
which the RFC leaves open what a reader does.

Each is a value, which the tests put in an object, `{"v": ...}`, or an object itself.
"""

from __future__ import annotations

_STRINGS = [
    r'["a"]', r'[""]', r'["asd "]', r'["a/*b*/c/*d//e"]', r'["\""]', r'["\\n"]', r'["\\a"]', r'["\\u0000"]',
    r'["\"\\\/\b\f\n\r\t"]', r'["\u0060\u012a\u12AB"]', r'["\u0012"]', r'["\u0000"]', r'["\u0022"]',
    r'["\u002c"]', r'["\u005C"]', r'["\u0061\u30af\u30EA\u30b9"]', r'["\u0123"]', r'["\u0821"]', r'["\uA66D"]',
    r'["new\u000Aline"]', r'["new\u00A0line"]', r'["\u200B"]', r'["\u2064"]', r'["\uFDD0"]', r'["\uFFFE"]',
    r'["\uFFFF"]', r'["\uD801\udc37"]', r'["\ud83d\ude39\ud83d\udc8d"]', r'["\uD834\uDd1e"]',
    r'["\uD83F\uDFFE"]', r'["\uDBFF\uDFFE"]', r'["\uDBFF\uDFFF"]',
    '["π"]', '["⍂㈴⍂"]', '["€𝄞"]', '["\x7f"]', '["a\x7fa"]', '["\u2028"]', '["\u2029"]', '["\uffff"]',
    '["\U0001bfff"]', '["\U0010ffff"]',
]  # fmt: skip
_NUMBERS = [
    "[0]", "[-0]", "[-0.0]", "[123]", "[-1]", "[-123]", "[ 4]", "[0e1]", "[0e+1]", "[0E-1]", "[20e1]", "[1E22]",
    "[1E-2]", "[1E+2]", "[1e-2]", "[1e+2]", "[123e45]", "[123.456e78]", "[123e65]", "[123.456789]",
    f"[-0.{'0' * 77}1]", "42", "-0.1",
]  # fmt: skip
_STRUCTURES = [
    "[false]", "[true]", " [1]", "[2] ", "[true, false]", "true", "false", '"asd"', '""', '" "', '["a", "b"]',
    "[[1], [2, 3]]", '[["a", "b"], ["c", "d"]]', "[[true, false], [false, true]]", "[[[1]], [[2]]]",
    '{"a": "b"}', '{"a": "b", "c": "d"}', '{"a":1}\n', '{"a\\u0000b": 42}', '{"min": -1.0e+28, "max": 1.0e+28}',
    f'{{"x": [{{"id": "{"x" * 40}"}}], "id": "{"x" * 40}"}}', r'{"title": "\u041f\u043e\u043b \u0417"}',
    '{"a": {"b": {"c": [1]}}}', ' {"a": 1} ', '\t{"a"\t:\r1}',
]  # fmt: skip
# Valid texts whose values are read.
READ = [*_STRINGS, *_NUMBERS, *_STRUCTURES]

_EMPTY = "always empty, in 1 rows: its type is unknown, so it is left out"
_OUT = "which no feature holds, so it is left out"
_GAPS = "with 2 items that are missing (`{kind: var_len, dtype: int64, missing_item: -1}` stores -1 in their place)"
_ONE_LINE = "expected JSON, got the end of the line at column {} (a line has a whole object)"
_TWICE = "expected every name once, got `a` again"
# Valid texts with nothing to infer a feature from, with the note; names twice; and values of several lines.
WITHOUT_FEATURE = {
    "[]": f"v: {_EMPTY}",
    " [] ": f"v: {_EMPTY}",
    "[[]   ]": f"v: {_EMPTY}",
    "[null]": f"v: {_EMPTY}",
    "null": f"v: {_EMPTY}",
    '{"a": []}': f"a: {_EMPTY}",
    '{"a": {}}': f"a: {_EMPTY}",
    "[1, null, null, 2]": f"v: list<item: int64> {_GAPS}, {_OUT}",
    '[null, 1, "1", {}]': f"v: lists of int and str and dict, {_OUT}",
    '{"": 0}': "\"\": a column without a name (rename it, or read it with `columns: {index: ''}` of a file's source), "
    "so it is left out",
    "{}": "",
}
REFUSED = {
    '{"a": "b", "a": "c"}': _TWICE,
    '{"a": "b", "a": "b"}': _TWICE,
    "[1\n]": _ONE_LINE.format(9),
    '["a"]\n': _ONE_LINE.format(12),
    '{\n"a": 1\n}': _ONE_LINE.format(2),
}

# Texts that the grammar does not have.
INVALID = [
    # arrays
    "[1 true]", '["": 1]', '[""],', "[,1]", "[1,,2]", '["x",,]', '["x"]]', '["",]', '["x"', "[x", "[3[4]]", "[1:2]",
    "[,]", "[-]", '[   , ""]', "[1,]", "[1,,]", '["\va"\\f]', "[*]", '[""', "[1,", "[{}", '["a",\n4\n,1,',
    "[1,\n1\n,1", "[fals]", "[nul]", "[tru]", "[\u2060]", "[\u000c]", "[\0]",
    # numbers
    "123\0", "[++1234]", "[+1]", "[+Inf]", "[-01]", "[-1.0.]", "[-2.]", "[-NaN]", "[.-1]", "[.2e-3]", "[0.1.2]",
    "[0.3e+]", "[0.3e]", "[0.e1]", "[0E+]", "[0E]", "[0e+]", "[0e]", "[1.0e+]", "[1.0e-]", "[1.0e]", "[1 000.0]",
    "[1eE2]", "[2.e+3]", "[2.e-3]", "[2.e3]", "[9.e+]", "[Inf]", "[\uff11]", "[1+2]", "[0x1]", "[0x42]", "[0e+-1]",
    "[-foo]", "[- 1]", "[-012]", "[-.123]", "[-1x]", "[1ea]", "[1.]", "[.123]", "[1.2a-3]", "[1.8011670033376514H-308]",
    "[012]", "[-2147483648 1]",
    # objects
    '["x", truth]', "{[: \"x\"}\n", '{"x", null}', '{"x"::"b"}', '{🇨🇭}', '{"a":"a" 123}', "{key: 'value'}",
    '{"a" b}', '{:"b"}', '{"a":', '{"a"', "{1:1}", "{9999E9999:1}", "{null:null,null:null}", '{"id":0,,,,,}',
    "{'a':0}", '{"id":0,}', '{"a":"b"}/**/', '{"a":"b"}/**//', '{"a":"b"}//', '{"a":"b"}/', '{"a":"b",,"c":"d"}',
    '{a: "b"}', '{"a":"a', '{ "foo" : "bar", "a" }', '{"a":"b"}#',
    # strings
    r'["\uD800\"]', r'["\uD800\u"]', r'["\uD800\u1"]', r'["\uD800\u1x"]', "[é]", '["\\\0"]', r'["\x00"]', r'["\\\"]',
    '["\\\t"]', '["\\🌀"]', r'["\"]', r'["\u00A"]', r'["\uD834\uDd"]', r'["\uD800\uD800\x"]', r'["\a"]',
    r'["\uqqqq"]', r'[\u0020"asd"]', r"[\n]", '"', "['single quote']", "abc", '["\\', '["a\0a"]', '["new\nline"]',
    '["\t"]', r'"\UA66D"', '""x', '"\x1f"',
    # structures
    " ", "", "\ufeff", "<.>", "[<null>]", "[1]x", "[1]]", '["asd]', "aå", "[True]", "1]", '{"x": true,', "[][]", "]",
    "[", '{"a":"b"', "2@", "{}}", '{"":', '{"a":/*comment*/"b"}', '{"a": true} "x"', "['", "[,", "[{", '["a', '["a"',
    "{", "{]", "{,", "{[", '{"a', "{'a'", r'["\{["\{["\{["\{', "*", '{"a":"b"}#{}', r'[\u000A""]', "[1",
    "[ false, nul", "[ true, fals", "[ false, tru", "å", "\u2060", '"x" "y"', "1,2x", "[1}",
]  # fmt: skip
# What is neither UTF-8 nor JSON.
INVALID_BYTES = [
    b"[a\xe5]", b"[\xff]", b"[123\xe5]", b"[1e1\xe5]", b"[0\xe5]", b"[1e\xe5]", b'["\\u\xe5"]', b'["\\\xe5"]',
    b"\xef\xbb{}", b"\xe5", b'{"\xb9":"0",}',
]  # fmt: skip

_ENCODED = "expected UTF-8 text, got the byte 0x{} at byte {} of the line"
_LONE = f"v: lists of str with a lone surrogate, which UTF-8 cannot encode, {_OUT}"
_BEYOND = f"v: lists of int beyond int64 and uint64 (in quotes it is text), {_OUT}"
_OVERFLOW = "expected a number that float64 holds without overflow, got "
# What the RFC leaves open: what is read, as Python's `json` reads it;
OPEN_READ = ["[123.456e-789]", "[123e-10000000]", "[NaN]", "[Infinity]", "[-Infinity]", '\ufeff{"a": 1}']
# what has no feature, with the note;
OPEN_WITHOUT_FEATURE = {
    "[-123123123123123123123123123123]": _BEYOND,
    "[100000000000000000000]": _BEYOND,
    "[-237462374673276894279832749832423479823246327846]": _BEYOND,
    r'["\uDADA"]': _LONE,
    r'["\uD888\u1234"]': _LONE,
    r'["\uD800\n"]': _LONE,
    r'["\uDd1ea"]': _LONE,
    r'["\uD800\uD800\n"]': _LONE,
    r'["\ud800"]': _LONE,
    r'["\ud800abc"]': _LONE,
    r'["\uDd1e\uD834"]': _LONE,
    r'["\uDFAA"]': _LONE,
    "\ufeff{}": "",
}
# and what is refused.
OPEN_REFUSED = {
    b"[0.4e006699999999999999999999999999999999999]": _OVERFLOW
    + "0.4e006699999999999999999999999999999999999",
    b"[-1e+9999]": _OVERFLOW + "-1e+9999",
    b"[1.5e+9999]": _OVERFLOW + "1.5e+9999",
    b"[-123123e100000]": _OVERFLOW + "-123123e100000",
    b"[123123e100000]": _OVERFLOW + "123123e100000",
    rb'{"\uDFAA":0}': "expected names that UTF-8 can encode, got `\\udfaa`",
    b'["\xe6\x97\xa5\xd1\x88\xfa"]': _ENCODED.format("fa", 14),
    b'["\xed\xa0\x80"]': _ENCODED.format("ed", 9),
    b'["\xff"]': _ENCODED.format("ff", 9),
    b'["\xe9"]': _ENCODED.format("e9", 9),
    b'["\x81"]': _ENCODED.format("81", 9),
    b'["\xf4\xbf\xbf\xbf"]': _ENCODED.format("f4", 9),
    b'["\xc0\xaf"]': _ENCODED.format("c0", 9),
    b'["\xfc\x83\xbf\xbf\xbf\xbf"]': _ENCODED.format("fc", 9),
    b'["\xfc\x80\x80\x80\x80\x80"]': _ENCODED.format("fc", 9),
    b'["\xe0\xff"]': _ENCODED.format("e0", 9),
    '["é"]'.encode("utf-16"): _ENCODED.format("ff", 7),
    '["é"]'.encode("utf-16-le"): "expected UTF-8 text, got the byte 0xe9 at byte 11 of the line",
    '["é"]'.encode("utf-16-be"): "expected UTF-8 text, got the byte 0xe9 at byte 12 of the line",
    b"[" * 100_000: "expected JSON, got lists in lists without end",
    b'[{"":' * 50_000: "expected JSON, got lists in lists without end",
}
