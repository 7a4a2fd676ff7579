"""Laptops, boxes and benches for every suite here."""

from kit.laptops import boxes, laptop, new_laptop
from kit.transfers import bench

__all__ = ["bench", "boxes", "laptop", "new_laptop"]
