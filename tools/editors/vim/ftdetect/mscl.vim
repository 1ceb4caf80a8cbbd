" Which files are programs of mscclc.
autocmd BufRead,BufNewFile *.mscl setfiletype mscl
