m{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":"# mscclc: -D n=3\nimport \"b\"\nlet a = n\n","version":1}}}
{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///b","text":"let n = 1\n","version":1}}}
{"method":"workspace/didChangeConfiguration","params":{"settings":{"mscclc":{"defines":{"R":3}}}}}
{"method":"textDocument/didClose","params":{"textDocument":{"uri":"file:///b"}}}
{"method":"textDocument/definition","params":{"textDocument":{"uri":"file:///a"},"position":{"line":2,"character":8}},"id":3}
