"""What runs in the children: the only package besides the hand-off that knows Triton.

The parent never imports it for its code; it starts `python -m gluonmap.worker.server` and speaks `protocol`.
"""
