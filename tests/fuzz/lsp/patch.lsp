m{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":"param R = 1\ncollective allgather(ranks: R)\nrank r in 0..R { copy output[r] <- x }\n","version":1}}}
{"method":"textDocument/codeAction","params":{"textDocument":{"uri":"file:///a"},"range":{"start":{"line":0,"character":0},"end":{"line":99,"character":0}},"context":{"diagnostics":[{"source":"mscclc","severity":1}]}},"id":1}
{"method":"workspace/executeCommand","params":{"command":"mscclc.findPatch","arguments":["file:///a"]},"id":2}
