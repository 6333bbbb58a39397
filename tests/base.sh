# Shared by scripts that compare with another commit: $rev is the commit BASE (the last one if not
# given), $old its compiler, built once a commit.
: "${BUILD:=build}" "${BASE:=HEAD}"
rev=$(git rev-parse --verify --quiet "$BASE^{commit}") || { echo "no commit $BASE" >&2; exit 2; }
old_tree=$BUILD/base/$rev
old=$old_tree/build/mdlc
if [ ! -x "$old" ]; then
    rm -rf "$old_tree"
    mkdir -p "$old_tree"
    git archive "$rev" | tar xf - -C "$old_tree" || exit 2
    make -s -C "$old_tree" BUILD=build build/mdlc >"$BUILD/base/build.log" 2>&1 || {
        echo "$BASE does not build, see $BUILD/base/build.log" >&2
        exit 2
    }
fi
