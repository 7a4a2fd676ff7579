from shapes.square import area

__all__ = ["area"]
