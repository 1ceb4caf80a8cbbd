m{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":"param R = 1\ncollective allgather(ranks: R)\nrank r in 0..R { copy output[r] <- input }\n","version":1}}}
{"method":"textDocument/rename","params":{"textDocument":{"uri":"file:///a"},"position":{"line":0,"character":6},"newName":"n"},"id":1}
