#!/bin/sh
# Writes samples/data/chars.txt, the text that samples/chars.mdl learns: this project's own pages,
# library, samples and headers, one behind the other. The file is in the repository; it is written
# anew only on purpose, since results that tests compare depend on it. Run from the root.
set -eu
LC_ALL=C
export LC_ALL
cat README.md CONTRIBUTING.md docs/language.md docs/status.md docs/decisions/*.md lang/nn.mdl \
    samples/*.mdl compiler/*.h LICENSE >samples/data/chars.txt
wc -c samples/data/chars.txt
