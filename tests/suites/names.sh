#!/bin/sh
# Names of the model meet C: words and macros of its headers, names that would be equal once they
# are identifiers, very long names, kernels that become many functions. Each emitted file must
# compile without warnings, under -std=c11 and under the compiler's own dialect.
set -u
. tests/lib.sh

# compiles NAME FILE.mdl: emits, then checks the C file in both dialects.
compiles() {
    # shellcheck disable=SC2086
    if ! "$MDLC" $2 -o "$scratch/x.c" >"$scratch/log" 2>&1; then
        fail "$1" "mdlc: $(head -n 1 "$scratch/log")"
        return
    fi
    # shellcheck disable=SC2086
    check "$1, C11" $CC $STRICT_FLAGS -fsyntax-only "$scratch/x.c"
    check "$1, own dialect" $CC -Wall -Wextra -Wshadow -Werror -fsyntax-only "$scratch/x.c"
}

# entry_of NAME...: an entry with an input and a result of each name.
entry_of() {
    printf 'entry e('
    for word in "$@"; do printf '%s: [2], ' "$word"; done
    printf ') {\n    return '
    comma=
    for word in "$@"; do
        printf '%s%s = %s * 2' "$comma" "$word" "$word"
        comma=', '
    done
    printf ';\n}\n'
}


# Operands of what follows a product, called as what its epilogue is given and calls its own.
cat >"$scratch/epilogue.mdl" <<'END'
use nn;
model net(x: [32, 64]) -> [32, 48] { return linear(x, 48); }
entry f(x: [32, 64], ctx: [48], m0: [48], rows: [48], n0: [48], cols: [48], strip: [48], ld: [48], args: [48], block: [48],
        part: [48], batch: [48], pace: [48], team: [48], i0: [48], site0: [48], seed: [48], m: [48], n: [48]) {
    y[b, k] = net(x)[b, k] * ctx[k] + m0[k] * rows[k] + n0[k] * cols[k] + strip[k] * ld[k] + args[k] * block[k]
        + part[k] * batch[k] + pace[k] * team[k] + i0[k] * site0[k] + seed[k] * m[k] * n[k];
    return y;
}
END
compiles "names of an epilogue" "--no-main $scratch/epilogue.mdl"

# Stems that begin the names of gradients and layers too.
for stem in d fc1 fc2 head d_fc1 clip; do
    cp samples/digits.mdl "$scratch/$stem.mdl"
    compiles "a stem that begins names of buffers, $stem" "$scratch/$stem.mdl"
done

# The words of C and C++ that are no words of mdlc.
entry_of int char float double void static struct union enum for do if switch case default break \
    continue goto typedef extern register volatile const signed unsigned short long auto sizeof \
    inline restrict main exit malloc free printf int64_t uint64_t uint8_t size_t class template this \
    delete try catch throw namespace bool asm near far linux unix errno environ index y0 j1 gamma \
    params state io arena bytes name rows seed x u prefix m out memory self part parts ctx args block \
    ld typeof typeof_unqual nullptr constexpr alignas alignof thread_local static_assert char8_t concept \
    consteval constinit co_await co_return co_yield requires decltype noexcept >"$scratch/words.mdl"
compiles "words of C" "$scratch/words.mdl"
# C23 and C++20 have more words than C11, gcc's own C has some of them.
for dialect in "$CC -std=gnu11" "$CC -std=c2x" "${CXX:-c++} -std=c++20 -x c++"; do
    echo 'int x;' >"$scratch/one.c"
    if $dialect -fsyntax-only "$scratch/one.c" 2>"$scratch/log"; then
        # shellcheck disable=SC2086
        check "words of C, $dialect" $dialect -w -fsyntax-only "$scratch/x.c"
    else
        skip "words of C, $dialect" "the compiler does not know it"
    fi
done

# Every macro that is visible where the model's names stand, whatever the system's headers have: the
# small ones, and a part of the capital ones, of which there are thousands.
"$MDLC" samples/digits.mdl -o "$scratch/digits.c"
$CC -dM -E "$scratch/digits.c" | sed -n 's/^#define \([A-Za-z][A-Za-z0-9_]*\) .*/\1/p' |
    grep -v '^[mM][dD]_\|^DIGITS_\|^digits_' | sort -u >"$scratch/macros"
if [ "$(wc -l <"$scratch/macros")" -gt 200 ]; then
    # shellcheck disable=SC2046
    entry_of $(grep '^[a-z]' "$scratch/macros") $(grep '^[A-Z]' "$scratch/macros" | awk 'NR % 25 == 1') \
        >"$scratch/macro.mdl"
    compiles "macros of the headers" "$scratch/macro.mdl"
else
    skip "macros of the headers" "$CC does not list them (-dM -E)"
fi

# Different names stay different.
entry_of int int_ int__ main main_ EOF EOF_ EOF_2 v_EOF NAN v_NAN a_b a__b a_ a__ a_2 _a _Bool v_Bool >"$scratch/equal.mdl"
compiles "names that meet as identifiers" "$scratch/equal.mdl"
cat >"$scratch/items.mdl" <<'END'
layer double(x: [4]) -> [4] { param static: [4] = 1; return x * static; }
layer a_b(x: [4]) -> [4] { param c: [4] = 1; return x * c; }
layer a(x: [4]) -> [4] { param b_c: [4] = 1; return x * b_c; }
model struct(x: [4]) -> [4] { param a_b_c: [4] = 2; return double(x) + (p: a_b(x)) + (p_c: a(x)) * a_b_c; }
train for(x: [4]) of struct {
    y = struct(x);
    loss mean(y^2);
    metric int = max(y);
    metric errno = min(y);
    optimizer volatile(lr = 0.1);
    steps 2;
}
optimizer volatile(p: [...], g: [...], lr: real) { state void: [...] = 0; void <- g; p <- p - lr * g; }
entry for_eval(x: [4]) { return struct(x); }
entry for_in(x: [4]) { return struct(x); }
entry main(x: [4]) { return struct(x); }
entry init(x: [4]) { return struct(x); }
entry bind(x: [4]) { return struct(x); }
entry save(x: [4]) { return struct(x); }
entry tensors(x: [4]) { return struct(x); }
entry strerror(x: [4]) { return struct(x); }
entry memory(x: [4]) { return struct(x); }
END
compiles "items named by words of C" "$scratch/items.mdl"

# Values called as what an emitted program says of an entry or of itself: kernels have the names of
# values, each of its own where NaN are looked for.
"$MDLC" --checks=nan samples/digits.mdl -o "$scratch/digits.c"
words=$(grep -oE '\bdigits_(fit_|predict_|)[a-z_]+\b' "$scratch/digits.c" | sed 's/digits_//; s/^fit_//; s/^predict_//' |
    sort -u | while read -r word; do # those that mdlc takes
        echo "entry e(x: [4]) { $word = x; return $word; }" >"$scratch/one.mdl"
        ! "$MDLC" check "$scratch/one.mdl" 2>"$scratch/log" || echo "$word"
    done)
{
    echo 'model net(x: [4]) -> [4] { param w: [4] = 1; return x * w; }'
    echo 'optimizer o(p: [...], g: [...], lr: real) { p <- p - lr * g; }'
    for kind in 'train fit(x: [4]) of net' 'entry e(x: [4])' 'entry host(x: [4])' 'entry tensor(x: [4])'; do
        echo "$kind {"
        last='net(x)'
        for word in $words call inputs outputs hypers init bind table; do
            case " ${seen:-} " in *" $word "*) continue ;; esac
            seen="${seen:-} $word"
            echo "    $word = exp($last) - 1;"
            last=$word
        done
        case $kind in train*) echo "    loss sum($last); optimizer o(lr = 0.1); steps 2;" ;; *) echo "    return $last;" ;; esac
        echo '}'
        seen=
    done
    echo 'entry e_call(x: [4]) { return x * 2; }'
} >"$scratch/host.mdl"
[ "$(echo "$words" | wc -l)" -gt 40 ] && pass || fail "words of the host part" "$(echo "$words" | wc -l) found"
compiles "values called as what is said of an entry" "$scratch/host.mdl"
compiles "values called as what is said of an entry, NaN" "--checks=nan $scratch/host.mdl"
for word in call inputs outputs; do
    printf 'entry e(x: [4]) { %s = exp(x); return y = sum(%s), z = %s; }\n' $word $word $word >"$scratch/one.mdl"
    compiles "a value called $word" "$scratch/one.mdl"
done

# Entries and trains called as everything that an emitted program has at file scope, in front of the
# items that it has it for and behind them; with a prefix in capitals its macros are among that.
owned() { # PREFIX FILE BEFORE|BEHIND [FLAG...]
    owned_prefix=$1 owned_file=$2 owned_place=$3
    shift 3
    "$MDLC" "$@" --prefix="$owned_prefix" "$owned_file" -o "$scratch/x.c" 2>"$scratch/log" || fail "$owned_file" "is not emitted"
    grep -oiE "\b${owned_prefix}_[a-z0-9_]+\b" "$scratch/x.c" | cut -c$((${#owned_prefix} + 2))- | sort -u >"$scratch/owned"
    # What the file calls stays what it is.
    grep -oE '[A-Za-z_][A-Za-z0-9_]*' "$owned_file" | sort -u | comm -23 "$scratch/owned" - >"$scratch/left" && mv "$scratch/left" "$scratch/owned"
    owned_line='model owned_net(x: [4]) -> [4] { param w: [4] = 1; return x * w; } optimizer owned_step(p: [...], g: [...], lr: real) { p <- p - lr * g; }'
    for owned_try in 1 2 3; do # without those that the file has, and words of mdlc
        owned_items=$(awk 'NR % 2 { print "entry " $1 "(x: [4]) { return x * 2; }"; next }
            { print "train " $1 "(x: [4]) of owned_net { loss sum(owned_net(x)); optimizer owned_step(lr = 0.1); steps 2; }" }' "$scratch/owned")
        if [ "$owned_place" = before ]; then
            printf '%s\n' "$owned_items" "$owned_line" | cat - "$owned_file" >"$scratch/owned.mdl"
            owned_first=0
        else
            printf '\n%s\n%s\n' "$owned_line" "$owned_items" | cat "$owned_file" - >"$scratch/owned.mdl"
            owned_first=$(($(wc -l <"$owned_file") + 2))
        fi
        "$MDLC" check "$scratch/owned.mdl" 2>"$scratch/log" && break
        grep -oE 'owned.mdl:[0-9]+' "$scratch/log" | cut -d: -f2 | sort -u >"$scratch/refused"
        awk -v first="$owned_first" 'NR == FNR { refused[$1 - first]; next } !(FNR in refused)' "$scratch/refused" "$scratch/owned" >"$scratch/left"
        mv "$scratch/left" "$scratch/owned"
    done
    [ "$(wc -l <"$scratch/owned")" -gt 80 ] && pass || fail "names of $owned_file" "$(wc -l <"$scratch/owned") found"
    "$MDLC" "$@" --budget=1GiB --prefix="$owned_prefix" "$scratch/owned.mdl" -o "$scratch/x.c" -H "$scratch/x.h" 2>"$scratch/log" || fail "$owned_file" "$(head -n 1 "$scratch/log")"
    check "names of $owned_file, $owned_prefix $owned_place $*" $CC -w -fsyntax-only "$scratch/x.c"
}
owned zq samples/digits.mdl behind
owned zq samples/digits.mdl before --checks=canary
owned ZQ samples/digits.mdl behind
owned zq tests/suites/phase.mdl before --checks=nan
owned ZQ samples/dqn.mdl before --no-main
printf 'entry ab(x: [4]) { return x * 2; }\nentry AB(x: [4]) { return sum(exp(x)) * x; }\nentry ab_2(x: [4]) { return x; }\n' >"$scratch/one.mdl"
compiles "entries that differ in capitals" "$scratch/one.mdl"

# The file's name is the prefix of everything: R_OK, X_OK and others are macros of unistd.h.
for letter in a f r w x W; do
    printf 'entry e(x: [4]) { return x * 2; }\n' >"$scratch/$letter.mdl"
    compiles "a file called $letter.mdl" "$scratch/$letter.mdl"
done
# A file called like something in it. What the functions of an emitted program declare is no prefix.
for word in net model data; do
    cp samples/digits.mdl "$scratch/$word.mdl"
    compiles "a file called $word.mdl" "$scratch/$word.mdl"
done
"$MDLC" samples/digits.mdl -o "$scratch/digits.c"
sed -n '/^\/\* ---- model/,$p' "$scratch/digits.c" |
    grep -oE '\b(void|int|int64_t|uint64_t|size_t|double|float|unsigned|md_[a-z]+|char) \**[a-z][a-z0-9_]*\b' |
    grep -oE '[a-z][a-z0-9_]*$' | grep -v '^md_\|digits\|^fc\|^head' | sort -u >"$scratch/words"
[ "$(wc -l <"$scratch/words")" -gt 25 ] && pass || fail "words" "$(wc -l <"$scratch/words") found"
few=0
while read -r word; do # those of buffers give way; a few show it
    if "$MDLC" --prefix="$word" samples/digits.mdl -o "$scratch/x.c" 2>"$scratch/log"; then
        few=$((few + 1))
        [ $few -gt 3 ] || compiles "prefix $word" "--prefix=$word samples/digits.mdl"
    else
        grep -q E0701 "$scratch/log" && pass || fail "prefix $word" "$(head -n 1 "$scratch/log")"
    fi
done <"$scratch/words"

# Names of 1,900 letters that differ in the last one, in every place that makes an identifier: a path
# of two of them is the longest string that C promises to take.
long=$(awk 'BEGIN { while (i++ < 1899) printf "n" }')
cat >"$scratch/long.mdl" <<END
layer ${long}l(x: [40, 50]) -> [40, 50] { param ${long}p: [40, 50] = 1; return exp(x) * ${long}p; }
model net(${long}x: [40, 50]) -> [40, 50] {
    ${long}a = ${long}l(${long}x);
    ${long}b = softmax_of(${long}a);
    return ${long}b;
}
op softmax_of(x: [n, k]) -> [n, k] { m = sum(x, axis = 1); y[i, j] = x[i, j] / m[i]; return y; }
entry ${long}e(${long}x: [40, 50], ${long}y: [40, 50]) {
    return ${long}x = net(${long}x), ${long}y = net(${long}y);
}
entry ${long}f(${long}x: [40, 50]) { return ${long}z = net(${long}x); }
END
compiles "names of 1,900 letters" "$scratch/long.mdl"

# A concatenation runs one parallel loop for each operand, and each becomes a function.
cat >"$scratch/join.mdl" <<'END'
const ramp[i < 300000] = f32(i);
state s: [300000] = ramp;
entry join() {
    t = s as [1000, 300];
    u = concat(t, t, t, t, t);
    return u = u;
}
END
compiles "five parallel loops" "$scratch/join.mdl"
element() { od -A n -j $((128 + 4 * $1)) -N 4 -t f4 "$scratch/u.npy" | tr -d ' '; } # behind the header
if quickly "$scratch/x.c" "$scratch/join" && "$scratch/join" join --out "u=$scratch/u.npy" >"$scratch/out" 2>&1; then
    got="$(element $((7 * 1500 + 299))) $(element $((8 * 1500 + 300))) $(element $((999 * 1500 + 1499)))"
    [ "$got" = "2399 2400 299999" ] && pass || fail "five parallel loops: values" "$got"
else
    fail "five parallel loops" "does not run"
fi
summary names
