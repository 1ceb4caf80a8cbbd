" Syntax of .mscl, programs of mscclc.
if exists("b:current_syntax")
  finish
endif

syntax keyword msclKeyword language ir program import require param collective ensure select launch
syntax keyword msclKeyword def rank let buffer channel semaphore tb group for if else to at where
syntax keyword msclKeyword then

syntax keyword msclOperatorWord or and not in except
syntax keyword msclBoolean true false

syntax keyword msclOp copy put get put_with_signal put_with_signal_and_flush reduce read_reduce
syntax keyword msclOp reduce_send read_reduce_send copy_packets unpack_packets put_packets
syntax keyword msclOp read_put_packets reduce_packets reduce_send_packets reduce_packets_put
syntax keyword msclOp reduce_copy_packets reduce_copy_send_packets switch_broadcast
syntax keyword msclOp switch_broadcast_packets switch_reduce switch_reduce_broadcast apply signal wait
syntax keyword msclOp flush release acquire barrier sync pipeline await notify

syntax keyword msclFunction min max log2 ceil_div len sum

syntax keyword msclConstant LL8 LL16 LL128 sentinel f32 f16 bf16 f64 i32 u32 i64 u64 i8 u8 e4m3 e5m2
syntax keyword msclConstant e4m3b15 any replicated ranks tree exact prod avg interleaved blocked
syntax keyword msclConstant either input output relaxed
syntax keyword msclCollective allreduce reduce allgather gather reducescatter alltoall alltoallv
syntax keyword msclCollective broadcast scatter sendrecv barrier custom

syntax keyword msclRows external row groups token scalar out inout local sharded abs sqrt rsqrt exp
syntax keyword msclRows pow2_up pow2_down fma mean T e8m0 round chain once

syntax match msclNumber "\v<(0x[0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?)(KiB|MiB|GiB)?>"
syntax match msclArrow "<-"
syntax match msclOption "\v<(ranks|chunks|counts|root|shift|inplace|even|order|columns|sizes|nodes|gpus_per_node|dtypes|ops|tags|priority|threads|instances|policy|align|fuse|auto_sync|reuse_scratch|split|foreign|packets|copies|credits|unit|units|loop|relaxed|op|part|tree|exact|complete|of|raises|bits|scope|tiles|after|type)>\ze\s*:"
syntax match msclChannel "\v<(memory|port|switch)>\ze\s*\("
syntax region msclString start=+"+ skip=+\\.+ end=+"+ oneline
syntax match msclComment "#.*$" contains=@Spell

highlight default link msclKeyword Keyword
highlight default link msclOperatorWord Operator
highlight default link msclBoolean Boolean
highlight default link msclOp Function
highlight default link msclFunction Function
highlight default link msclConstant Constant
highlight default link msclCollective Type
highlight default link msclRows StorageClass
highlight default link msclNumber Number
highlight default link msclArrow Operator
highlight default link msclOption Identifier
highlight default link msclChannel Type
highlight default link msclString String
highlight default link msclComment Comment

let b:current_syntax = "mscl"
