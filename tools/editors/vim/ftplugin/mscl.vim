" How programs of mscclc are edited.
setlocal commentstring=#\ %s comments=:# expandtab shiftwidth=2 softtabstop=2
