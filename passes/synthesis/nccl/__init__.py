"""Rings as NCCL makes them: in every box a path through all its ranks, from one NIC to another."""
