#!/usr/bin/env python3
"""Writes samples/data/digits.csv and diabetes.csv from scikit-learn's bundled tables.

The files are in the repository; this script says how they came about. Run from the root, with
scikit-learn installed: python3 tests/tools/make_data.py

digits.csv    1797 rows without a header: 64 pixels 0..16 row by row, then the label 0..9.
diabetes.csv  442 rows with a header: 10 columns, each with mean 0 and (population) variance 1,
              then the target as it is. All digits of a double, so that the optimum is exact.
"""
import numpy as np
from sklearn.datasets import load_diabetes, load_digits

digits = load_digits()
with open("samples/data/digits.csv", "w", newline="\n") as out:
    for pixels, label in zip(digits.data.astype(int), digits.target):
        out.write(",".join(str(v) for v in [*pixels, label]) + "\n")

diabetes = load_diabetes(scaled=False)
x = diabetes.data - diabetes.data.mean(axis=0)
x /= np.sqrt((x * x).mean(axis=0))
with open("samples/data/diabetes.csv", "w", newline="\n") as out:
    out.write(",".join([*diabetes.feature_names, "target"]) + "\n")
    for row, target in zip(x, diabetes.target):
        out.write(",".join([*(f"{v!r}" for v in row.tolist()), f"{target:.9g}"]) + "\n")

table = np.loadtxt("samples/data/diabetes.csv", delimiter=",", skiprows=1)
design = np.column_stack([table[:, :10], np.ones(len(table))])
weights, *_ = np.linalg.lstsq(design, table[:, 10], rcond=None)
error = table[:, 10] - design @ weights
total = table[:, 10] - table[:, 10].mean()
print("least squares: MSE %.11f, R2 %.14f, intercept %.7f" %
      ((error @ error) / len(table), 1 - (error @ error) / (total @ total), weights[10]))
