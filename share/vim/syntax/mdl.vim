" Vim syntax of .mdl files, the language of mdlc. The words are those of lang/word.c; a test holds them.
if exists('b:current_syntax')
    finish
endif
let s:keep = &cpo
set cpo&vim
syntax case match

" Words that are reserved everywhere.
syntax keyword mdlReserved return emit repeat scan while when else new frozen as and or not in
syntax keyword mdlFold sum min max mean prod argmax argmin

" Words that begin an item, at the start of a line or of a statement; ordinary names elsewhere.
syntax match mdlItem /\v%(^|[;{}])@<=\s*<%(use|dim|const|state|ring|op|layer|model|optimizer|dataset|test|phase|train|entry)>\ze\s+[A-Za-z_"]/
" Words that begin a clause of a train, an entry or a data set.
syntax match mdlClause /\v%(^|[;{}])@<=\s*<%(optimizer|loss|metric|clip|accumulate|ema|precision|budget|steps|epochs|freeze|file|holdout|shuffle|expect)>\ze\s+[^=[:space:]]/
syntax match mdlInner /\v%(^|[;{}]|frozen)@<=\s*<%(param|ode)>\ze\s+\h/
" Words that go on with an item or a statement.
syntax match mdlHead /\v[[:alnum:]_)\]]\s+\zs<%(adjoint|of|on|at|then|carry|from|to|using|until)>\ze\s+[^=[:space:]]/

syntax keyword mdlType bool i8 i16 i32 i64 u8 u16 u32 f16 bf16 f32 f64 int int2 int3 real text
syntax keyword mdlConstant inf nan pi true false
syntax match mdlNumber /\v<\d[0-9_]*%(\.\d[0-9_]*)?%([eE][-+]?\d+)?%(\s*%(B|kB|KiB|MB|MiB|GB|GiB)>)?/
syntax match mdlAttribute /@\h\w*/
syntax match mdlOperator /|>\|->\|<-/
syntax match mdlLabel /\v<\h\w*\ze:\s*\h\w*%(\.\h\w*)*\(/
syntax region mdlString start=/"/ skip=/\\./ end=/"/ oneline contains=mdlEscape
syntax match mdlEscape /\\["\\nt]/ contained
syntax match mdlComment +//.*+ contains=@Spell
syntax match mdlDoc +///[^/].*+ contains=@Spell
syntax region mdlComment start=+/\*+ end=+\*/+ contains=@Spell

highlight default link mdlReserved Statement
highlight default link mdlFold Function
highlight default link mdlItem Structure
highlight default link mdlClause Keyword
highlight default link mdlInner Keyword
highlight default link mdlHead Keyword
highlight default link mdlType Type
highlight default link mdlConstant Constant
highlight default link mdlNumber Number
highlight default link mdlAttribute PreProc
highlight default link mdlOperator Operator
highlight default link mdlLabel Label
highlight default link mdlString String
highlight default link mdlEscape SpecialChar
highlight default link mdlComment Comment
highlight default link mdlDoc SpecialComment

setlocal commentstring=//\ %s comments=s1:/*,mb:*,ex:*/,:///,://
let b:current_syntax = 'mdl'
let &cpo = s:keep
unlet s:keep
