; What the parts of a program look like.
(comment) @comment
(string) @string
(number) @number
(keyword) @keyword
(word_operator) @keyword.operator
(op) @function.builtin
(function) @function.builtin
(constant) @constant.builtin
(collective) @type.builtin
(option) @property
(row_word) @keyword.modifier
(operator) @operator
(punctuation) @punctuation.delimiter
["{" "}" "[" "]" "(" ")"] @punctuation.bracket
(identifier) @variable
