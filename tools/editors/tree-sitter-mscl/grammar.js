// The grammar of .mscl for tree-sitter: made for highlighting, folding and selection. It takes all
// programs, and more: the compiler decides what is right. A newline ends a statement, except where
// docs/language.md says; here all that stands between braces is a sequence of pieces.

const OPS = [
  "copy", "put", "get", "put_with_signal", "put_with_signal_and_flush", "reduce", "read_reduce",
  "reduce_send", "read_reduce_send", "copy_packets", "unpack_packets", "put_packets",
  "read_put_packets", "reduce_packets", "reduce_send_packets", "reduce_packets_put",
  "reduce_copy_packets", "reduce_copy_send_packets", "switch_broadcast",
  "switch_broadcast_packets", "switch_reduce", "switch_reduce_broadcast", "apply", "signal", "wait",
  "flush", "release", "acquire", "barrier", "sync", "pipeline",
  "await", "notify",
];

const KEYWORDS = [
  "language", "ir", "program", "import", "require", "param", "collective", "ensure", "select",
  "launch", "def", "rank", "let", "buffer", "channel", "semaphore", "tb", "group", "for", "if",
  "else", "to", "at", "where", "then",
];

const WORD_OPERATORS = [
  "or", "and", "not", "in", "except",
];

const FUNCTIONS = [
  "min", "max", "log2", "ceil_div", "len", "sum",
];

const CONSTANTS = [
  "LL8", "LL16", "LL128", "sentinel", "f32", "f16", "bf16", "f64", "i32", "u32", "i64", "u64",
  "i8", "u8", "e4m3", "e5m2", "e4m3b15", "any", "replicated", "ranks", "tree", "exact", "prod",
  "avg", "interleaved", "blocked", "either", "true", "false", "input", "output",
];

const COLLECTIVES = [
  "allreduce", "allgather", "gather", "reducescatter", "alltoall", "alltoallv", "broadcast",
  "scatter", "sendrecv", "custom",
];

const OPTIONS = [
  "chunks", "counts", "root", "shift", "inplace", "even", "order", "columns", "sizes", "nodes",
  "gpus_per_node", "dtypes", "ops", "tags", "priority", "threads", "instances", "policy", "align",
  "fuse", "auto_sync", "reuse_scratch", "split", "foreign", "packets", "copies", "credits", "unit",
  "units", "loop", "relaxed", "op", "part", "complete", "memory", "port", "switch", "from",
  "of", "raises", "bits", "scope", "tiles", "after", "type",
];

// Of row functions and externals, besides words above.
const ROWS = [
  "external", "row", "groups", "token", "scalar", "out", "inout", "local", "sharded", "abs", "sqrt",
  "rsqrt", "exp", "pow2_up", "pow2_down", "fma", "mean", "T", "e8m0", "round", "chain", "once",
];

module.exports = grammar({
  name: "mscl",
  extras: ($) => [/\s/, $.comment],
  word: ($) => $.identifier,
  rules: {
    source_file: ($) => repeat($._piece),
    _piece: ($) =>
      choice(
        $.block,
        $.brackets,
        $.parentheses,
        $.keyword,
        $.op,
        $.word_operator,
        $.function,
        $.constant,
        $.collective,
        $.option,
        $.row_word,
        $.identifier,
        $.number,
        $.string,
        $.operator,
        $.punctuation,
      ),
    block: ($) => seq("{", repeat($._piece), "}"),
    brackets: ($) => seq("[", repeat($._piece), "]"),
    parentheses: ($) => seq("(", repeat($._piece), ")"),
    keyword: () => choice(...KEYWORDS),
    op: () => choice(...OPS),
    word_operator: () => choice(...WORD_OPERATORS),
    function: () => choice(...FUNCTIONS),
    constant: () => choice(...CONSTANTS),
    collective: () => choice(...COLLECTIVES),
    option: () => choice(...OPTIONS),
    row_word: () => choice(...ROWS),
    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
    number: () => /(0x[0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?)(KiB|MiB|GiB)?/,
    string: () => /"([^"\\\n]|\\["\\n])*"/,
    operator: () =>
      choice("<-", "..", "==", "!=", "<=", ">=", "<<", ">>", "**", "=", "<", ">", "+", "-", "*", "/",
             "%", "&", "|", "^"),
    punctuation: () => choice(",", ";", ":", ".", "@"),
    comment: () => token(seq("#", /.*/)),
  },
});
