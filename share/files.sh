#!/bin/sh
# files.sh BUILD ZSHDIR: what is installed, a line "MODE SOURCE DESTINATION" each, for install.sh.
# Generated files lie in BUILD/share.
set -u
made=$1/share zsh=$2

echo "755 $1/mdlc bin/mdlc"
for file in lang/*.mdl lang/*/*.mdl; do
    echo "644 $file share/mdlc/lib/${file#lang/}"
done
cat <<END
644 samples/hosts/mdlc_host.py share/mdlc/python/mdlc_host.py
644 $made/mdlc.1 share/man/man1/mdlc.1
644 $made/mdl.5 share/man/man5/mdl.5
644 $made/mdlc.bash share/bash-completion/completions/mdlc
644 $made/mdlc.zsh $zsh/_mdlc
644 $made/mdlc.fish share/fish/vendor_completions.d/mdlc.fish
644 share/vim/syntax/mdl.vim share/vim/vimfiles/syntax/mdl.vim
644 share/vim/ftdetect/mdl.vim share/vim/vimfiles/ftdetect/mdl.vim
644 $made/package.json share/mdlc/vscode/package.json
644 share/vscode/mdl.tmLanguage.json share/mdlc/vscode/mdl.tmLanguage.json
644 share/vscode/language-configuration.json share/mdlc/vscode/language-configuration.json
644 $made/mdlcConfig.cmake share/cmake/mdlc/mdlcConfig.cmake
644 $made/mdlcConfigVersion.cmake share/cmake/mdlc/mdlcConfigVersion.cmake
644 share/cmake/mdlcAddModel.cmake share/cmake/mdlc/mdlcAddModel.cmake
644 $made/mdlc.pc share/pkgconfig/mdlc.pc
644 LICENSE share/doc/mdlc/copyright
END
