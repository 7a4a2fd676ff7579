"""From what was asked for to a run that its host owns."""
