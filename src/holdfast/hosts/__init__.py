"""Where commands run and files land: a host is the argv that starts the far side there, and the near end of its
protocol."""
