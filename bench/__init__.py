"""The benchmarks: what the product costs, each figure beside the floor it is judged by, measured in the same run."""
