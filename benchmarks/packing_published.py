"""What the FGD paper's own runs allocated: mean and scatter over its seeds 42 to 51.

Source: hkust-adsl/kubernetes-scheduler-simulator, experiments/analysis/expected_results/
analysis_allo_discrete.csv, column 130 (percent of devices allocated when 130 % have arrived).
"""

SEEDS = 10
"""Streams behind each mean."""
_POLICIES = ("random", "dotprod", "gpuclustering", "gpupacking", "bestfit", "fgd")
# Workload, then mean and standard deviation of each policy, in percent.
_TABLE = """
default     87.47 0.32  90.85 0.20  91.88 0.62  92.00 0.54  93.08 0.13  95.39 0.08
cpu050      91.24 0.21  93.27 0.19  93.79 0.32  93.72 0.30  93.79 0.14  95.21 0.09
cpu100      89.11 0.29  91.95 0.27  92.64 0.44  92.72 0.46  93.44 0.13  95.35 0.14
cpu200      83.77 0.34  87.70 0.62  89.92 0.39  90.22 0.50  92.40 0.24  95.05 0.16
cpu250      80.42 0.29  83.81 0.46  87.99 0.58  88.28 0.65  91.45 0.22  93.41 0.28
gpushare40  86.00 0.36  89.56 0.14  90.02 0.59  90.03 0.50  91.69 0.21  94.15 0.07
gpushare60  83.65 0.29  87.11 0.28  87.20 0.42  87.45 0.38  89.36 0.19  91.40 0.12
gpushare80  81.22 0.29  84.49 0.20  84.85 0.54  85.00 0.49  87.01 0.24  89.30 0.12
gpushare100 79.44 0.13  82.42 0.31  82.65 0.48  82.57 0.49  85.01 0.20  86.90 0.15
gpuspec10   87.43 0.27  90.39 0.38  92.18 0.72  92.46 0.67  93.30 0.20  94.95 0.21
gpuspec20   87.24 0.32  89.97 0.40  92.25 0.61  92.94 0.64  93.30 0.09  94.84 0.12
gpuspec25   86.94 0.38  89.63 0.36  92.08 0.64  92.98 0.72  93.23 0.08  94.74 0.25
gpuspec33   86.46 0.13  89.14 0.38  92.12 0.68  93.22 0.63  93.09 0.15  94.55 0.14
multigpu20  88.69 0.48  92.06 0.32  93.56 0.61  93.71 0.64  93.93 0.23  95.65 0.16
multigpu30  89.27 0.41  93.28 0.30  94.72 0.31  94.87 0.32  94.72 0.22  96.46 0.09
multigpu40  90.09 0.44  94.19 0.21  95.50 0.31  95.74 0.30  95.23 0.24  96.99 0.09
multigpu50  90.27 0.44  94.85 0.21  95.81 0.29  96.18 0.31  95.74 0.19  97.18 0.10
"""
_ROWS = {
    row.split()[0]: [float(cell) for cell in row.split()[1:]] for row in _TABLE.split("\n") if row
}
WORKLOADS = tuple(_ROWS)
"""Names of the 17 workloads."""


def published(workload: str, policy: str) -> tuple[float, float] | None:
    """Return mean and standard deviation of the published runs; None where there are none."""
    if workload not in _ROWS or policy not in _POLICIES:
        return None
    at = 2 * _POLICIES.index(policy)
    return _ROWS[workload][at], _ROWS[workload][at + 1]
