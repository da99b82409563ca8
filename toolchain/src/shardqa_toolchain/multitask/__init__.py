"""Several tasks on one encoder: their data, their results, their scores (numpy and onnxruntime; no torch)."""
