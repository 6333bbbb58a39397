# A random convolution and its gradients, of -v seed=N, with -v whole=1 one whose windows are as long as
# the axis or nearly so: mdlc text. Written by suites/convolutions.sh.
#
# Axes a: places of the input are i1.. below x[a], windows k1.., results n1... Values are small
# integers that tell places apart.
function draw(from, to) { return from + int(rand() * (to - from + 1)) }
# "i1, i2", of a value's places; "i1 < 9, i2 < 9" with bounds
function places(name, extent, bounds,    a, text) {
    for (a = 1; a <= rank; a++) text = text (a > 1 ? ", " : "") name a (bounds ? " < " extent[a] : "")
    return text
}
# "b, c, i1, i2", or channels behind the places
function named(outer, channel, along, behind) {
    return outer ", " (behind ? along ", " channel : channel ", " along)
}
function pattern(outer, channel, name, most,    a, text) {
    text = outer " * " draw(3, 40) " + " channel " * " draw(3, 40)
    for (a = 1; a <= rank; a++) text = text " + " name a " * " draw(2, 20)
    return "f32((" text ") * (" text ") % 61 % " 2 * most + 1 " - " most ")"
}
# A value by its pattern, of largest number `most`; index_: its indices
function value(of, outer, outers, channel, channels, name, extent, behind, most) {
    index_[of] = named(outer, channel, places(name, extent, 0), behind)
    print "    " of "[" named(outer " < " outers, channel " < " channels, places(name, extent, 1), behind) "] = " \
        pattern(outer, channel, name, most) ";"
}
# What is compared of a result that lies as `weight` does: sums along places, and along channels
function sums(of, weight, outer, channel, name,    at) {
    at = places(name, x, 0)
    print "    p_" of "[" at "] = sum[" outer ", " channel "] " of "[" index_[weight] "] * " weight "[" index_[weight] "];"
    print "    c_" of "[" channel "] = sum[" outer ", " at "] " of "[" index_[weight] "];"
}
BEGIN {
    srand(seed)
    rand()
    form = draw(0, 4) # 0: windows of 3 x 3 at stride 1; 1: overlapping ones at strides; 4: many
                      # images of few channels; else any
    rank = form == 0 || form == 4 ? 2 : draw(1, 8)
    rank = rank > 3 ? 2 : rank
    c = form < 2 || draw(0, 1) ? 16 * draw(2, 9) : draw(9, 150)
    o = form < 2 || draw(0, 1) ? 16 * draw(2, 9) : draw(9, 150)
    if (form == 4) c = draw(2, 18) * 2
    if (form == 4) o = draw(8, 36)
    behind = form < 2 || form == 4 ? draw(0, 3) > 0 : draw(0, 1)
    work = c * o
    for (a = 1; a <= rank; a++) {
        k[a] = a > 1 && draw(0, 3) ? k[1] : rank == 3 ? draw(2, 3) : draw(0, 1) ? 3 : draw(1, 7)
        s[a] = a > 1 && draw(0, 3) ? s[1] : draw(0, 4) ? draw(1, 2) : 3
        d[a] = form < 2 || draw(0, 4) ? 1 : 2
        n[a] = rank == 1 ? draw(60, 200) : rank == 2 ? draw(4, 18) : draw(3, 6)
        if (form == 0) k[a] = 3
        if (form == 0) s[a] = 1
        if (form == 1) s[a] = 2
        if (form == 1) k[a] = rank == 3 ? 3 : draw(3, 7)
        if (form == 4) n[a] = draw(4, 9)
        if (whole && a <= 1 + seed % 2) n[a] = draw(1, 2)
        if (whole && a <= 1 + seed % 2) k[a] = draw(4, rank == 3 ? 6 : 14)
        p[a] = draw(form == 4 && k[a] > 1, k[a] - 1)
        x[a] = (n[a] - 1) * s[a] + d[a] * (k[a] - 1) + 1 - 2 * p[a] + draw(0, s[a] - 1)
        if (x[a] < 1) x[a] = 1
        at = at ", " s[a] " * n" a " + " d[a] " * k" a " - " p[a]
        work *= k[a] * n[a]
        drawn = drawn sprintf(" %d of %d by %d taps / %d dilated %d pad %d", n[a], x[a], k[a], s[a], d[a], p[a])
    }
    b = int(2 ^ (22 + (form ? 2 : 3) * rand()) / work) + 1
    print "// " b " of " c " to " o " channels, " (behind ? "last:" : "first:") drawn
    print "entry f() {"
    value("x", "b", b, "c", c, "i", x, behind, 3)
    value("w", "o", o, "c", c, "k", k, form < 4 && draw(0, 1), 2)
    value("v", "b", b, "o", o, "n", n, behind, 2)
    print "    y[" named("b", "o", places("n", n, 1), behind) "] = sum[c, " places("k", k, 0) "] (x[b" \
        (behind ? at ", c" : ", c" at) "] else 0) * w[" index_["w"] "];"
    print "    dx = vjp(y, x, v);"
    print "    dw = vjp(y, w, v);"
    sums("y", "v", "b", "o", "n")
    sums("dx", "x", "b", "c", "i")
    sums("dw", "w", "o", "c", "k")
    print "    return p_y, c_y, p_dx, c_dx, p_dw, c_dw;"
    print "}"
}
