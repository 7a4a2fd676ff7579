"""What everything else stands on: the folder's layout, frames, processes, output, the journal. Knows no run."""
