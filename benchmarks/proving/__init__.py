"""The parts of `benchmarks/proof.py`: the attacks, the figures in their outputs, their records, and the page."""
