m{"method":"shutdown","params":{},"id":7}
{"method":"$/cancelRequest","params":{"id":7}}
{"method":"no/such","params":{},"id":8}
{"method":"exit","params":{}}
