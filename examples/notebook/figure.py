#!/usr/bin/env python3
"""Draw a measure over a swept key, a line for each variant, with the spread over seeds.

    gfabric run scenarios/irn/tab4.2-load.yaml --seed 1,2,3
    python3 examples/notebook/figure.py results/tab4.2-load load slowdown_p99 figure.svg
"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

VARIANT = "variant"  # a column
MEASURE = "measure"  # a column
VALUE = "value"  # a column
UNIT = "unit"  # a column


def main(results, key, measure, picture):
    values = pd.read_csv(f"{results}/values.csv", keep_default_na=False)
    values = values[values[MEASURE] == measure]
    if values.empty:
        sys.exit(f"{results} has no {measure}")
    values[VALUE] = values[VALUE].astype(float)
    values[key] = values[key].astype(str)
    spread = values.groupby([VARIANT, key], sort=False)[VALUE].agg(["mean", "min", "max"]).reset_index()
    figure, axes = plt.subplots(figsize=(4.5, 3))
    for variant, rows in spread.groupby(VARIANT, sort=False):
        error = [rows["mean"] - rows["min"], rows["max"] - rows["mean"]]
        axes.errorbar(rows[key], rows["mean"], yerr=error, marker="o", capsize=3, label=variant)
    unit = values[UNIT].iloc[0]
    axes.set(xlabel=key, ylabel=f"{measure} ({unit})" if unit else measure)
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
