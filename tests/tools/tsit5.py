"""The tableau of Tsitouras 2011 ("Runge-Kutta pairs of order 5(4) satisfying only the first column
simplifying assumption"), written down a second time beside the library: coefficients of the stages, and
weights of their slopes."""
ROWS = [
    [],
    [0.161],
    [-0.008480655492356989, 0.335480655492357],
    [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
    [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
    [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
]
WEIGHTS = [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]


def step(slopes, y, d, t, h):
    """One step of y' and d', which slopes(y, t) gives, with any arrays; d is read by nothing on the way."""
    ks = []
    for row in ROWS:
        yi = y + h * sum(w * k[0] for w, k in zip(row, ks)) if row else y
        ks.append(slopes(yi, t + h * sum(row)))
    return tuple(x + h * sum(w * k[i] for w, k in zip(WEIGHTS, ks)) for i, x in enumerate((y, d)))
