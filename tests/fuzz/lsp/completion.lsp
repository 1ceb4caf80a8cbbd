m{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":"param R = 1\ncollective allgather(ranks: R)\nrank r in 0..R { copy output[r] <- input }\n","version":1}}}
{"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a","version":2},"contentChanges":[{"range":{"start":{"line":2,"character":17},"end":{"line":2,"character":41}},"text":"put ch."}]}}
{"method":"textDocument/completion","params":{"textDocument":{"uri":"file:///a"},"position":{"line":2,"character":24}},"id":1}
