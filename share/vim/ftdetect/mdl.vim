autocmd BufRead,BufNewFile *.mdl setfiletype mdl
