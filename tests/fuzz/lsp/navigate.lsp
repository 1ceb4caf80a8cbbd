m{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":"param R = 1\ncollective allgather(ranks: R)\nrank r in 0..R { copy output[r] <- input }\n","version":1}}}
{"method":"textDocument/definition","params":{"textDocument":{"uri":"file:///a"},"position":{"line":0,"character":6},"context":{"includeDeclaration":true}},"id":1}
{"method":"textDocument/references","params":{"textDocument":{"uri":"file:///a"},"position":{"line":0,"character":6},"context":{"includeDeclaration":true}},"id":2}
{"method":"textDocument/documentHighlight","params":{"textDocument":{"uri":"file:///a"},"position":{"line":0,"character":6},"context":{"includeDeclaration":true}},"id":3}
{"method":"textDocument/prepareRename","params":{"textDocument":{"uri":"file:///a"},"position":{"line":0,"character":6},"context":{"includeDeclaration":true}},"id":4}
