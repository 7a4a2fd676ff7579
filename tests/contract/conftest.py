"""Laptops and boxes for every suite here."""

from kit.laptops import boxes, laptop, new_laptop

__all__ = ["boxes", "laptop", "new_laptop"]
