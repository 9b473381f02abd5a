"""Stock-opname posting and the durable-workflow layer below it. Start reading at `opname/workflow.py`."""
